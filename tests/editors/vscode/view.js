// SPDX-License-Identifier: MIT
// The view of GPUs, from a process down to a lane.
"use strict";
const screen = require("./screen");
const { CALL_STACK, VARIABLES, mark, row, rows, seen, shoot, texts } = screen;

const [, , pid] = process.argv.slice(2);
const VIEW = ".pane-body .monaco-list[aria-label=\"Processes\"]";
const TREE = `${VIEW} .monaco-list-row`;

async function openView() {
	await mark("GPU");
	seen.processes = await rows(TREE, pid);
}

async function attachFromView() {
	await row(TREE, pid).hover();
	await row(TREE, pid).locator(".action-label[aria-label=\"Attach\"]").click();
	await screen.page.locator(".debug-toolbar").waitFor();
	// The view of the debugger comes to the front by itself.
	await rows(CALL_STACK, /scale.*Paused on exception/);
	await mark("GPU");
	seen.tree = await rows(TREE, /6 x spin.*running/);
}

const open = (text) => row(TREE, text).locator(".monaco-tl-twistie").click();

// It says so, and the rows stay as they are.
async function goToWhatRuns() {
	await row(TREE, /6 x spin.*running/).click();
	seen.whileItRuns = await rows(".statusbar-item", "It runs");
}

// What runs can be paused here, and then be gone into.
async function pauseAll() {
	// The buttons of one view among several are there while the mouse is.
	await screen.page.locator(".pane", { has: screen.page.locator(VIEW) }).hover();
	await screen.page.locator(".pane-header .action-label[aria-label^=\"Pause All GPU\"]").click();
	await row(TREE, /queue 1.*suspended/).waitFor();
	await row(TREE, /6 x spin.*halted/).waitFor();
	await open("6 x spin");
	seen.waves = await rows(TREE, "wave 1:0:2");
}

// A click on a lane goes to its group, its wave and itself.
async function goToLane() {
	await open("wave 1:0:2");
	seen.lanes = await rows(TREE, "lane 7");
	await row(TREE, /^lane 7/).click();
	await rows(TREE, /^lane 7/);
	await shoot("view");
	await mark("Run and Debug");
	seen.shown = await rows(VARIABLES, /^lane =7$/);
	seen.wave = await rows(VARIABLES, /^wave =1:0:2$/);
	seen.stack = await texts(CALL_STACK);
}

// Groups of several GPUs, and one page of the waves of one.
async function pageOfMany() {
	await row(TREE, pid).waitFor();
	await screen.page.keyboard.press("F5");
	await screen.page.locator(".debug-toolbar").waitFor();
	await screen.command("View: Show Run and Debug");
	await rows(CALL_STACK, "12600 x");
	await mark("GPU");
	// Rows are drawn one by one.
	for (let gpu = 0; gpu < 8; gpu++)
		await row(TREE, new RegExp(`^GPU ${gpu} .*12600 waves in 1 group`)).waitFor();
	seen.gpus = await rows(TREE, /^GPU 7 /);
	await screen.command("GPU agent: Pause All GPU Processes");
	await row(TREE, /queue 0.*suspended/).waitFor();
	await row(TREE, new RegExp("^12600 x .*halted")).waitFor();
	await open(/^12600 x .*halted/);
	seen.ranges = await rows(TREE, "waves 1280–1407");
	await open("waves 1280–1407");
	seen.page = await rows(TREE, /^wave .*lanes active/);
	await row(TREE, /^wave .*lanes active/).click();
	await screen.command("View: Show Run and Debug");
	seen.wave = await rows(VARIABLES, /^wave =/);
	await screen.meet("paged");
}

async function leaveView() {
	await screen.disconnect();
	seen.notifications = await texts(screen.NOTICE);
}

module.exports = { openView, attachFromView, goToWhatRuns, pauseAll, goToLane, leaveView, pageOfMany };
