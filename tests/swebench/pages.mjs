// Opens the pages of a run in a real browser and says how long it takes until they can be used:
// `node pages.mjs OUT PICTURES [CHROMIUM]`, where playwright-core can be found. Fails over a second.
import { readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [out, pictures, executablePath = "/usr/bin/chromium"] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const wrong = [];
page.on("pageerror", (error) => wrong.push(`${error}`));
page.on("requestfailed", (request) => wrong.push(`${request.url()} is not there`));
const url = (path) => pathToFileURL(`${out}/${path}`).href;
const took = async (what, act) => {
  const began = performance.now();
  await act();
  const millis = Math.round(performance.now() - began);
  console.log(`${what}: ${millis} ms`);
  if (millis > 1000) wrong.push(`${what} took ${millis} ms`);
};
const cells = (at) => page.$$eval(`#instances tbody tr:not([hidden]) td:nth-child(${at})`, (all) => all.map((one) => one.textContent));
const column = async (name) => (await page.$$eval("#instances th", (all) => all.map((one) => one.textContent.trim()))).indexOf(name) + 1;

await took("the table, opened and drawn", async () => {
  await page.goto(url("report.html"), { waitUntil: "load" });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
});
const all = (await cells(1)).length;
console.log(`${all} rows`);
await page.screenshot({ path: `${pictures}/table.png` });
const head = page.locator("#instances th button", { hasText: "tokens" });
await took("sorted by tokens", () => head.click());
await took("sorted the other way", () => head.click());
const tokens = (await cells(await column("tokens"))).map((text) => Number(text.replace(/\D/g, "")));
if (tokens.some((value, at) => at > 0 && value > tokens[at - 1])) wrong.push("the rows are not sorted by tokens");
await took("filtered", () => page.fill("#filter", "django"));
const shown = await cells(1);
if (shown.length === 0 || shown.length === all || !shown.every((one) => one.includes("django"))) wrong.push("the filter shows others");
await page.screenshot({ path: `${pictures}/filtered.png` });
await page.fill("#filter", "");
const sizes = [];
for (const name of readdirSync(`${out}/instances`).slice(0, 30)) {
  const began = performance.now();
  await page.goto(url(`instances/${name}/index.html`), { waitUntil: "load" });
  sizes.push([Math.round(performance.now() - began), name]);
}
sizes.sort((a, b) => b[0] - a[0]);
console.log(`slowest page of an instance: ${sizes[0][0]} ms (${sizes[0][1]})`);
if (sizes[0][0] > 1000) wrong.push("a page of an instance is slow");
await page.goto(url("report.html"));
await took("a page of an instance, by its link", async () => {
  await page.locator("#instances tbody tr td.good").first().locator("xpath=..").locator("a").click();
  await page.waitForSelector("svg");
});
await page.screenshot({ path: `${pictures}/instance.png`, fullPage: true });
await page.emulateMedia({ colorScheme: "dark" });
await page.screenshot({ path: `${pictures}/dark.png` });
await page.setViewportSize({ width: 400, height: 800 });
await page.goto(url("report.html"));
await page.screenshot({ path: `${pictures}/narrow.png` });
await browser.close();
for (const one of wrong) console.error(one);
process.exit(wrong.length === 0 ? 0 : 1);
