// SPDX-License-Identifier: MIT
// Draws what a program wrote to a terminal.
// usage: node draw.js BYTES COLUMNS ROWS PICTURE     prints the lines of the screen as JSON
"use strict";
const fs = require("fs");
const path = require("path");
const { chromium } = require("playwright-core");

const [bytes, columns, rows, picture] = process.argv.slice(2);
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
	"--no-first-run", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"];
const terminal = path.dirname(require.resolve("@xterm/xterm/package.json"));

async function main() {
	const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
	try {
		const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
		await page.setContent('<body style="margin:0"><div id="t" style="display:inline-block"></div></body>');
		await page.addStyleTag({ path: `${terminal}/css/xterm.css` });
		await page.addScriptTag({ path: `${terminal}/lib/xterm.js` });
		const lines = await page.evaluate(([data, cols, rows]) => new Promise((done) => {
			const t = new Terminal({ cols, rows, fontFamily: "DejaVu Sans Mono", fontSize: 12, scrollback: 0 });
			t.open(document.getElementById("t"));
			t.write(Uint8Array.from(atob(data), (c) => c.charCodeAt(0)), () => {
				const buffer = t.buffer.active;
				done(Array.from({ length: rows }, (_, i) => buffer.getLine(i).translateToString(true)));
			});
		}), [fs.readFileSync(bytes).toString("base64"), Number(columns), Number(rows)]);
		await page.locator(".xterm-screen").screenshot({ path: picture });
		console.log(JSON.stringify(lines));
	} finally {
		await browser.close();
	}
}

main().catch((error) => {
	console.error(error.message);
	process.exit(1);
});
