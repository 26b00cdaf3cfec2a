// SPDX-License-Identifier: MIT
// What is looked at while the GPU runs, and without sources: nothing is told in red that nobody has caused.
"use strict";
const screen = require("./screen");
const { CALL_STACK, NOTICE, meet, row, rows, seen, texts } = screen;

const [, , pid] = process.argv.slice(2);
const TREE = ".pane-body .monaco-list[aria-label=\"Processes\"] .monaco-list-row";
const WATCH = ".debug-watch .monaco-list-row";

async function attachToRunning() {
	await row(TREE, pid).hover();
	await row(TREE, pid).locator(".action-label[aria-label=\"Attach\"]").click();
	await screen.page.locator(".debug-toolbar").waitFor();
	await screen.command("View: Show Run and Debug");
	seen.running = await rows(CALL_STACK, /scale.*Running/);
}

async function faultAfterAttach() {
	await meet("fault");
	seen.fault = await rows(CALL_STACK, /Paused on exception/);
	await screen.page.locator(".exception-widget").waitFor();
	seen.exception = await screen.page.locator(".exception-widget").textContent();
}

const hover = () => screen.hover("while", "flag");

async function watchAtFault() {
	const pane = screen.page.locator(".pane", { has: screen.page.locator(".debug-watch") });
	await pane.hover();
	await pane.locator(".pane-header .action-label[aria-label=\"Add Expression\"]").click();
	await screen.page.locator(".debug-watch input").waitFor();
	await screen.page.keyboard.type("flag");
	await screen.page.keyboard.press("Enter");
	seen.watch = await rows(WATCH, /^flag =\S/);
	await hover();
	await meet("hovered");
}

async function watchWhileRunning() {
	await screen.page.keyboard.press("F5");
	await rows(CALL_STACK, /scale.*Running/);
	await hover();
	seen.watchRunning = await rows(WATCH, "flag");
	await meet("moved");
	await screen.page.waitForTimeout(1000);
	seen.afterRunning = await texts(NOTICE);
}

async function hiddenSources() {
	await meet("hide");
	await screen.page.keyboard.press("F6");
	await rows(CALL_STACK, /spin.*Paused/);
	await row(CALL_STACK, /^6 x spin/).click();
	seen.hidden = await rows(CALL_STACK, "spin");
	seen.listing = await rows(".monaco-editor .view-line", "s_sleep");
	await screen.page.waitForTimeout(1000);
	seen.afterHidden = await texts(NOTICE);
	await screen.disconnect();
}

module.exports = { attachToRunning, faultAfterAttach, watchAtFault, watchWhileRunning, hiddenSources };
