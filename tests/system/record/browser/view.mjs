// SPDX-License-Identifier: MIT
// Opens recordings as people do: a file of speedscope in its own viewer, and a flame graph in a browser.
// usage: node view.mjs PICTURES SPEEDSCOPE-FILE SVG...     prints one JSON object for each; pictures are named after the files
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

// The viewer draws with WebGL, here without a GPU.
const FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--no-first-run", "--disable-dev-shm-usage", "--allow-file-access-from-files",
	"--host-resolver-rules=MAP * ~NOTFOUND"];
const require = createRequire(import.meta.url);
const VIEWER = path.join(path.dirname(require.resolve("speedscope/package.json")), "dist/release/index.html");
const AXE = require.resolve("axe-core/axe.min.js");
const [pictures, recording, ...graphs] = process.argv.slice(2);

function listen(page) {
	const said = [], requests = [];
	page.on("request", (r) => requests.push(r.url()));
	page.on("console", (m) => m.type() === "error" && said.push(m.text()));
	page.on("dialog", (d) => { said.push(`dialog ${d.message()}`); d.dismiss(); });
	page.on("pageerror", (e) => said.push(e.message));
	return { said, requests };
}

// The table of its sandwich view has each frame with what it weighs itself and with what it calls.
async function view(browser) {
	const page = await browser.newPage({ viewport: { width: 1000, height: 600 } });
	const heard = listen(page);
	await page.goto(`file://${VIEWER}`);
	await page.locator("input[type=file]").setInputFiles(recording);
	await page.getByText("captures of waves").first().waitFor();
	await page.screenshot({ path: path.join(pictures, "speedscope.png") });
	await page.getByText("Sandwich").click();
	await page.getByText("Self").first().waitFor();
	const rows = await page.locator("tr").allInnerTexts();
	const text = await page.locator("body").innerText();
	await page.screenshot({ path: path.join(pictures, "speedscope-table.png") });
	await page.close();
	return { file: recording, rows, text, said: heard.said };
}

async function look(browser, file) {
	const page = await browser.newPage({ viewport: { width: 1240, height: 500 } });
	const heard = listen(page);
	await page.goto(`file://${file}`);
	const boxes = await page.evaluate(() => [...document.querySelectorAll("g")].map((g) => {
		const text = g.querySelector("text");
		return { title: g.querySelector("title").textContent, width: g.querySelector("rect").getBoundingClientRect().width,
			text: text ? text.getBoundingClientRect().width : 0 };
	}));
	await page.locator(":root").screenshot({ path: path.join(pictures, `${path.basename(file, ".svg")}.png`) });
	await page.close();
	// In a page, as in a report: axe judges documents of HTML.
	const around = await browser.newPage();
	const svg = fs.readFileSync(file, "utf8").replace(/^<\?xml[^>]*\?>/, "");
	await around.setContent(`<!doctype html><html lang="en"><title>x</title><main><h1>x</h1>${svg}</main></html>`);
	await around.addScriptTag({ path: AXE });
	const result = await around.evaluate(() => axe.run(document));
	await around.close();
	return { file, boxes, said: heard.said, requests: heard.requests,
		axe: result.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(" | ")}`) };
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
try {
	console.log(JSON.stringify(await view(browser)));
	for (const file of graphs)
		console.log(JSON.stringify(await look(browser, file)));
} finally {
	await browser.close();
}
