/** Settings of the editor as arguments of the server and as parameters of a run. */

/** A setting that the user has changed, by its name without `starling.`; unset ones are left out. */
export type Changed = Record<string, unknown>;

/** What the server is started with: it takes the same keys as the configuration file. */
export function serverArguments(config: Record<string, unknown>): string[] {
  const keys = Object.entries(config).flatMap(([key, value]) => ["-c", `${key}=${toml(value)}`]);
  return ["lsp", ...keys];
}

/** Commands that ask a model. */
const ASK_A_MODEL = ["starling.run", "starling.ask", "starling.retry"];

/** The argument of a command with the model that is chosen; empty for none. */
export function withModel<T extends object>(command: string, about: T, model: string): T {
  return model !== "" && ASK_A_MODEL.includes(command) ? { model, ...about } : about;
}

function toml(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What a run is started with: only what the user has changed, so that the configuration files keep their say. */
export function runParameters(changed: Changed): Record<string, unknown> {
  const limits: Record<string, unknown> = {};
  for (const key of ["calls", "tokens", "dollars", "seconds", "agents"]) {
    const value = changed[`limits.${key}`];
    if (typeof value === "number") {
      limits[key] = value;
    }
  }
  const given: [string, unknown][] = [
    ["driver", changed["run.driver"]],
    ["approve", changed["run.approve"]],
    ["ask_intent", changed["run.askIntent"]],
    ["test", changed["tests.command"] || undefined],
  ];
  return { ...Object.fromEntries(given.filter(([, value]) => value !== undefined)), limits };
}
