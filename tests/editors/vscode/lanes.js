// SPDX-License-Identifier: MIT
// The table of lanes: opened from a wave and by its command, its columns and their formats, and the way to a lane.
"use strict";
const screen = require("./screen");
const { CALL_STACK, NOTICE, PICKER, VARIABLES, row, rows, seen, shoot, texts } = screen;

const [, , pid] = process.argv.slice(2);
const TREE = ".pane-body .monaco-list[aria-label=\"Processes\"] .monaco-list-row";
const INPUT = ".quick-input-widget input.input";

// The page is a frame in a frame.
const frame = () => screen.page.frameLocator("iframe.webview").frameLocator("#active-frame");
const title = (wave) => frame().locator("h1", { hasText: `Lanes of wave ${wave}` }).waitFor();
const link = (name) => frame().getByRole("link", { name, exact: true });
const head = (name) => frame().getByRole("columnheader").filter({ hasText: name }).first();

// What a screen reader finds: heads, and cells of each row.
async function table() {
	const element = frame().getByRole("table", { name: /^Lanes of wave/ });
	return {
		heads: await element.getByRole("columnheader").allTextContents(),
		rows: await element.locator("tbody tr").evaluateAll((list) => list.map((tr) => [...tr.children].map((c) => c.textContent))),
		current: await element.locator("tr[aria-current=true] th").allTextContents(),
		status: await frame().getByRole("status").textContent(),
		exec: await frame().locator("#exec").textContent(),
		scripts: await frame().locator("script").count(),
		policy: await frame().locator("meta[http-equiv]").getAttribute("content"),
	};
}

async function lanesOfWave() {
	await row(TREE, "wave 1:0:2").hover();
	await row(TREE, "wave 1:0:2").locator(".action-label[aria-label=\"Show Lanes\"]").click();
	await title("1:0:2");
	await frame().locator("tbody tr").first().waitFor();
	seen.wave = await table();
}

async function addColumn(text) {
	await link("Add a column").click();
	await screen.page.locator(INPUT).fill(text);
	await screen.page.keyboard.press("Enter");
	await head(text.split(",")[0]).waitFor();
}

async function format(column, from, to) {
	await link(`Format of ${column}: ${from}`).click();
	await row(PICKER, new RegExp(`^${to}`)).click();
	await link(`Format of ${column}: ${to}`).waitFor();
	return table();
}

// Each format of a register, and an expression that means nothing.
async function columnsOfLanes() {
	await addColumn("$v1");
	seen.formats = {};
	let from = "as its type";
	for (const to of ["hex", "int", "float", "half", "bf16"]) {
		seen.formats[to] = await format("$v1", from, to);
		from = to;
	}
	await addColumn("nonsense + 1, x");
	await frame().locator("thead .failure").waitFor();
	seen.failure = await table();
	await link("Remove the column nonsense + 1").click();
	await head("nonsense").waitFor({ state: "hidden" });
	await link("Only active lanes").click();
	await link("All lanes").waitFor();
	seen.active = await table();
	await link("All lanes").click();
	await link("Only active lanes").waitFor();
	await shoot("lanes");
	seen.notices = await texts(NOTICE);
}

// By the keyboard; the variables in the debugger are those of the lane then.
async function laneFromTable() {
	await link("Show lane 9").focus();
	await screen.page.keyboard.press("Enter");
	await link("Show lane 9, which is shown").waitFor();
	seen.chosen = await table();
	await screen.command("View: Show Run and Debug");
	seen.shown = await rows(VARIABLES, /^lane =9$/);
}

// The table goes where the debugger goes, down to the frame.
async function lanesOfFrame() {
	await row(CALL_STACK, /^2 x scale/).click();
	await row(CALL_STACK, /^inner/).click();
	await title("0:0:0");
	await link("Variables of the function").click();
	await head(/^s /).waitFor();
	seen.inner = await table();
	await row(CALL_STACK, /^scale/).click();
	await head(/^data /).waitFor();
	seen.outer = await table();
}

async function lanesWhileRunning() {
	await screen.page.keyboard.press("F5");
	await frame().getByRole("status").filter({ hasText: "The GPU runs" }).waitFor();
	seen.running = await table();
}

async function attachToWarps() {
	await row(TREE, pid).hover();
	await row(TREE, pid).locator(".action-label[aria-label=\"Attach\"]").click();
	await screen.page.locator(".debug-toolbar").waitFor();
	await screen.command("View: Show Run and Debug");
	// A single thread that runs has no row of its own.
	await screen.page.getByText(/Attached to process/).first().waitFor();
	await screen.command("GPU agent: Pause All GPU Processes");
	await rows(VARIABLES, /^wave =0:0:0$/);
}

async function lanesOfWarp() {
	await screen.command("GPU agent: Show Lanes");
	await frame().locator("tbody tr").first().waitFor();
	await addColumn("$R4, x");
	seen.warp = await table();
	await shoot("lanes-cuda");
}

module.exports = {
	lanesOfWave, columnsOfLanes, laneFromTable, lanesOfFrame, lanesWhileRunning, attachToWarps, lanesOfWarp,
};
