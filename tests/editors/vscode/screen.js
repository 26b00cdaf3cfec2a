// SPDX-License-Identifier: MIT
// What a person sees of VS Code in a browser, and what is written down of it.
"use strict";
const readline = require("readline");

const [, url, , source, , out] = process.argv.slice(2);
const PATIENCE = Number(process.env.PATIENCE_MS) || 120000; // a deadline only decides how long a failure takes
const CALL_STACK = ".debug-call-stack .monaco-list-row";
const VARIABLES = ".debug-variables .monaco-list-row";
const DISASSEMBLY = ".disassembly-view .monaco-list-row";
const CONSOLE = ".repl .monaco-list-row";
const NOTICE = ".notification-list-item-message";
const DIALOG = ".monaco-dialog-box";
const PICKER = ".quick-input-widget .monaco-list-row";

const seen = {};
let page;

function setPage(opened) {
	page = opened;
	page.setDefaultTimeout(PATIENCE);
}

const texts = (selector) => page.locator(selector).allTextContents();
const row = (selector, text) => page.locator(selector, { hasText: text }).first();
// What appears little by little is there.
const shoot = (name, clip) => page.screenshot({ path: `${out}/${name}.png`, clip, animations: "disabled" });

// A view, by its mark beside the sidebar or above the panel.
const mark = (name) => page.locator(`.composite-bar .action-label[aria-label^="${name}"]`).first().click({ force: true });

// Until some row of a list has that text; the texts of all rows.
async function rows(selector, text) {
	await row(selector, text).waitFor({ timeout: PATIENCE });
	return texts(selector);
}

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function meet(word) {
	console.log(word);
	await lines.next();
}

// Keys are lost while the editor is busy with something else: again, until it worked.
async function until(what, attempt) {
	const deadline = Date.now() + PATIENCE;
	for (;;) {
		try {
			return await attempt();
		} catch (error) {
			if (Date.now() > deadline)
				throw new Error(`${what}: ${error.message}`);
		}
	}
}

async function command(name) {
	const input = page.locator(".quick-input-widget input.input");
	// What comes to the front meanwhile closes the list.
	await until(name, async () => {
		await page.keyboard.press("F1");
		await input.waitFor({ timeout: 5000 });
		await input.fill(`>${name}`, { timeout: 5000 });
		await row(PICKER, name).click({ timeout: 5000 });
	});
}

// The folder that is open.
const place = () => new URL(url).searchParams.get("folder");

// An entry of the menu of a row.  A menu ignores clicks that come right after it has opened, but no keys.
async function menu(at, name, choose = async () => undefined) {
	const label = new RegExp(`^${name.replaceAll(".", "\\.")}$`);
	await until("menu", async () => {
		await page.keyboard.press("Escape");
		await choose();
		await at.click({ button: "right", timeout: 5000 });
		await page.locator(".monaco-menu .action-label", { hasText: label }).hover({ timeout: 5000 });
		await page.keyboard.press("Enter");
		await page.locator(".monaco-menu").first().waitFor({ state: "hidden", timeout: 5000 });
	});
}

// The file that is proposed to be written.
async function acceptName(ending) {
	const input = page.locator(".quick-input-widget input.input");
	await input.waitFor();
	await until("name", async () => {
		if (!(await input.inputValue()).endsWith(ending))
			throw new Error(`${await input.inputValue()} is proposed`);
	});
	await page.locator(".quick-input-widget .monaco-button", { hasText: "OK" }).click();
}

// The page of a core file is a frame in a frame.
async function report(text) {
	const frame = page.frameLocator("iframe.webview").frameLocator("#active-frame");
	await frame.locator("pre", { hasText: text }).waitFor();
	return frame.locator("body").textContent();
}

// The cursor is at a word in a line; a mouse without a hand does not stay for long enough.
async function hover(line, word) {
	const at = await row(".monaco-editor .view-line", line).evaluate((element, name) => {
		const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
		let text;
		do
			text = walker.nextNode();
		while (!text.data.includes(name));
		const range = document.createRange();
		range.setStart(text, text.data.indexOf(name));
		range.setEnd(text, text.data.indexOf(name) + name.length);
		const { x, y, width, height } = range.getBoundingClientRect();
		return { x: x + width / 2, y: y + height / 2 };
	}, word);
	await page.mouse.click(at.x, at.y);
	await page.keyboard.press("Control+K");
	await page.keyboard.press("Control+I");
}

// By the button: keys go to what has the focus.
async function disconnect() {
	await page.locator(".debug-toolbar .action-label[aria-label^=\"Disconnect\"]").click();
	await page.locator(".debug-toolbar").waitFor({ state: "hidden" });
}

async function openWorkbench() {
	await page.goto(url);
	await page.locator(".monaco-workbench").waitFor();
	// The extension's own mark: before it is there, keys do nothing.
	await page.locator(".statusbar-item", { hasText: "GPU agent" }).waitFor();
	await row(".explorer-folders-view .monaco-list-row", source).dblclick();
	await page.locator(".monaco-editor .view-line").first().waitFor();
}

module.exports = {
	CALL_STACK, CONSOLE, DIALOG, DISASSEMBLY, NOTICE, PATIENCE, PICKER, VARIABLES, acceptName, command, disconnect, hover, mark,
	meet, menu, place, report, row, rows, seen, setPage, shoot, steps: { openWorkbench }, texts, until,
	get page() {
		return page;
	},
};
