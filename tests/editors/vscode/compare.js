// SPDX-License-Identifier: MIT
// Two snapshots side by side, and the way on to the vendor's debugger.
"use strict";
const fs = require("fs");
const screen = require("./screen");
const { CALL_STACK, NOTICE, command, mark, meet, menu, row, rows, seen, shoot, texts } = screen;

const [, , pid] = process.argv.slice(2);
const TREE = ".pane-body .monaco-list[aria-label=\"Processes\"] .monaco-list-row";
const FILES = ".explorer-folders-view .monaco-list-row";
const TITLE = ".tab.active .label-name";
const SIDES = ".monaco-diff-editor .view-line";
const TERMINAL = ".xterm-rows > div";

async function compareLater() {
	await mark("GPU");
	await row(TREE, pid).waitFor();
	await menu(row(TREE, pid), "Compare with 2 s Later");
	seen.later = await rows(TITLE, pid);
	seen.laterSides = await rows(SIDES, /^HUNG/);
	await shoot("compare");
}

async function saveSnapshots() {
	for (const name of ["one", "two"]) {
		await menu(row(TREE, pid), "Save GPU Snapshot");
		await screen.acceptName(".gpusnapshot.json");
		await rows(NOTICE, "The snapshot is saved");
		await command("Notifications: Clear All Notifications");
		fs.renameSync(`${screen.place()}/${pid}.gpusnapshot.json`, `${screen.place()}/${name}.json`);
		await meet("move");
	}
}

// In the explorer, by what is chosen; the earlier one is on the left, whichever was clicked first.
async function compareFiles() {
	await mark("Explorer");
	await menu(row(FILES, "one.json"), "Compare GPU Snapshots", async () => {
		await row(FILES, "two.json").click();
		await row(FILES, "one.json").click({ modifiers: ["Control"] });
	});
	seen.files = await rows(TITLE, pid);
	seen.filesSides = await rows(SIDES, /^HUNG/);
	seen.problems = await texts(".monaco-diff-editor .squiggly-error");
	seen.notifications = await texts(NOTICE);
}

// Our session is over before the command is typed, and nobody has pressed Enter.
async function handOver() {
	await mark("GPU");
	await row(TREE, pid).hover();
	await row(TREE, pid).locator(".action-label[aria-label=\"Attach\"]").click();
	await screen.page.locator(".debug-toolbar").waitFor();
	await rows(CALL_STACK, /scale/);
	await meet("attached");
	await screen.page.locator(".debug-toolbar .action-label[aria-label^=\"Continue in rocgdb\"]").click();
	seen.handedOver = await rows(NOTICE, "has let go of process");
	seen.terminal = await rows(TERMINAL, `rocgdb -p ${pid}`);
	seen.toolbar = await screen.page.locator(".debug-toolbar:visible").count();
	await meet("released");
	await shoot("handover");
}

module.exports = { compareLater, saveSnapshots, compareFiles, handOver };
