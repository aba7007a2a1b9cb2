/** Models to choose from. */

/** The answer to `starling/models`. */
export interface ModelsReply {
  chosen: string | null;
  models: { name: string; detail: string }[];
  keys: { provider: string; variable: string; prefix: string | null }[];
}

/** One entry of the list. A name that ends with a colon is a beginning, whose rest is typed. An empty name is of a
 * provider that has to be configured first. */
export interface ModelChoice {
  label: string;
  description: string;
  name: string;
  /** Whether runs use it now. */
  present: boolean;
}

/** What the list holds; `set` is the model of the settings, empty for none. */
export function modelChoices({ chosen, models, keys }: ModelsReply, set: string): ModelChoice[] {
  const present = set || chosen;
  const marked = (name: string, detail: string): ModelChoice => ({
    label: name === present ? `$(check) ${name}` : name,
    description: detail,
    name,
    present: name === present,
  });
  const listed = models.map(({ name, detail }) => marked(name, detail));
  const other = present && !models.some(({ name }) => name === present) ? [marked(present, "in use")] : [];
  const prefixes = keys.map(({ provider, variable, prefix }) =>
    prefix
      ? { label: `${prefix}…`, description: `${provider}: ${variable} is set`, name: prefix, present: false }
      : { label: `${provider}…`, description: `${variable} is set`, name: "", present: false },
  );
  return [...other, ...listed, ...prefixes];
}
