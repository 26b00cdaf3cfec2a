// SPDX-License-Identifier: MIT
// Opens reports as people do, from a file, and says what a browser and two judges see.
// usage: node check.mjs PICTURES FILE...     prints one JSON object a file; pictures are named after the files
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { HtmlValidate } from "html-validate";
import { chromium } from "playwright-core";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
	"--no-first-run", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"];
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const [pictures, ...files] = process.argv.slice(2);

// What html-validate recommends, and nothing less.
async function validate(file) {
	const report = await new HtmlValidate({ root: true, extends: ["html-validate:recommended"] }).validateFile(file);
	return report.results.flatMap((r) => r.messages.map((m) => `${m.line}: ${m.ruleId}: ${m.message}`));
}

async function judge(browser, file, scheme) {
	const context = await browser.newContext({ bypassCSP: true, colorScheme: scheme });
	const page = await context.newPage();
	await page.goto(`file://${file}`);
	await page.addScriptTag({ path: AXE });
	// Colours are all that differs in the dark.
	const rules = scheme === "dark" ? { runOnly: ["color-contrast"] } : {};
	const result = await page.evaluate((options) => axe.run(document, options), { resultTypes: ["violations"], ...rules });
	await page.screenshot({ path: path.join(pictures, `${path.basename(file, ".html")}-${scheme}.png`) });
	await context.close();
	return result.violations.map((v) => `${scheme}: ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" | ")}`);
}

// With scripts allowed, under the page's own policy: what it asks for, says, and consists of.
async function load(browser, file) {
	const context = await browser.newContext();
	const page = await context.newPage();
	const requests = [], said = [];
	page.on("request", (r) => requests.push(r.url()));
	page.on("console", (m) => said.push(m.text()));
	page.on("dialog", (d) => { said.push(`dialog ${d.message()}`); d.dismiss(); });
	page.on("pageerror", (e) => said.push(e.message));
	await page.goto(`file://${file}`);
	const elements = await page.evaluate(() => {
		const count = {};
		for (const e of document.querySelectorAll("*"))
			count[e.localName] = (count[e.localName] || 0) + 1;
		return count;
	});
	const document = await page.evaluate(() => window.document.getElementById("gpu-agent-document")?.textContent);
	const handlers = await page.evaluate(() => [...window.document.querySelectorAll("*")].flatMap((e) =>
		[...e.attributes].map((a) => a.name).filter((n) => n.startsWith("on") || n === "style" || n === "href" || n === "src")));
	await context.close();
	return { requests, said, elements, document, handlers };
}

// Without scripts, on a narrow screen, and as print.
async function read(browser, file) {
	const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 360, height: 640 } });
	const page = await context.newPage();
	await page.goto(`file://${file}`);
	const h1 = await page.locator("h1").innerText();
	const pdf = await page.pdf();
	await context.close();
	const narrow = await browser.newPage({ viewport: { width: 360, height: 640 } });
	await narrow.goto(`file://${file}`);
	const width = await narrow.evaluate(() => document.documentElement.scrollWidth);
	await narrow.close();
	return { h1, pdf: pdf.length, width };
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
try {
	for (const file of files)
		console.log(JSON.stringify({
			file, size: fs.statSync(file).size, html: await validate(file), ...await load(browser, file), ...await read(browser, file),
			axe: [...await judge(browser, file, "light"), ...await judge(browser, file, "dark")],
		}));
} finally {
	await browser.close();
}
