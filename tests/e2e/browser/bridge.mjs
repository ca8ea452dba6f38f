// Lets a test in Python drive a browser: reads one JSON object a line, { code, args }, runs the code as the body of an
// async function with `page`, `context`, `browser` and `args`, and answers { value } or { error } on a line.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [modules, executablePath] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(`${modules}/playwright-core/index.mjs`));
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
let context;
let page;
const trouble = [];

/** A fresh window; what goes wrong in it is kept: errors of scripts, refusals of the content security policy. */
async function open(options) {
  await context?.close();
  context = await browser.newContext(options);
  page = await context.newPage();
  trouble.length = 0;
  page.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // That a server is away is reported by the browser, and expected by the test that stops it.
    if (message.type() === "error" && !message.text().includes("net::ERR_")) trouble.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(options.origin)) trouble.push(`foreign request: ${request.url()}`);
  });
}

const AsyncFunction = open.constructor;
console.log(JSON.stringify({ value: browser.version() }));
for await (const line of createInterface({ input: process.stdin })) {
  const { code, args } = JSON.parse(line);
  try {
    const run = new AsyncFunction("open", "page", "context", "trouble", "args", code);
    const value = await run(open, page, context, trouble, args);
    console.log(JSON.stringify({ value: value ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
await browser.close();
