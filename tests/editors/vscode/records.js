// SPDX-License-Identifier: MIT
// The view of stored records: opened, saved, pinned, removed.
"use strict";
const screen = require("./screen");
const { CALL_STACK, DIALOG, NOTICE, mark, meet, menu, report, row, rows, seen, shoot, texts, until } = screen;

const VIEW = ".pane-body .monaco-list[aria-label=\"Stored Records\"]";
const TREE = `${VIEW} .monaco-list-row`;
const FAULT = /wave memory violation/;
const SNAPSHOT = /^snapshot/;

async function openRecords() {
	await mark("GPU");
	await meet("fault");
	seen.records = await rows(TREE, FAULT);
}

// A record that is made while somebody looks is there without being asked for.
async function newRecord() {
	await meet("snapshot");
	seen.both = await rows(TREE, SNAPSHOT);
}

async function openRecord() {
	await row(TREE, FAULT).click();
	seen.stack = await rows(CALL_STACK, /scale.*Paused on exception/);
	await screen.disconnect();
	await screen.page.locator(".tab", { hasText: "gpucore" }).click();
	seen.page = await report("memory violation: 2 waves");
	await mark("GPU");
	await rows(TREE, FAULT);
	await shoot("records");
	await row(TREE, SNAPSHOT).click();
	await screen.page.locator(".monaco-editor .view-line", { hasText: "requested" }).waitFor();
	seen.text = await texts(".monaco-editor .view-line");
	seen.sessionsOfText = await screen.page.locator(".debug-toolbar:visible").count();
}

async function pinRecord() {
	await menu(row(TREE, FAULT), "Pin");
	seen.pinned = await rows(TREE, /wave memory violation.*pinned/);
	await menu(row(TREE, FAULT), "Remove");
	seen.notRemoved = await rows(NOTICE, "is pinned");
	await screen.command("Notifications: Clear All Notifications");
	await menu(row(TREE, FAULT), "Unpin");
	await row(TREE, /wave memory violation.*pinned/).waitFor({ state: "detached" });
}

async function saveRecord() {
	await menu(row(TREE, FAULT), "Save Core File As...");
	await screen.acceptName(".gpucore");
	await rows(NOTICE, "The core file is written");
	await screen.command("Notifications: Clear All Notifications");
}

// Nothing is removed before somebody has agreed.
async function removeRecord() {
	await menu(row(TREE, FAULT), "Remove");
	await screen.page.locator(DIALOG, { hasText: "Remove the stored record?" }).waitFor();
	seen.question = await texts(`${DIALOG} .dialog-message-container`);
	await screen.page.locator(`${DIALOG} .monaco-button`, { hasText: "Cancel" }).click();
	await screen.page.locator(DIALOG).waitFor({ state: "hidden" });
	await meet("kept");
	await menu(row(TREE, FAULT), "Remove");
	await screen.page.locator(`${DIALOG} .monaco-button`, { hasText: "Remove" }).click();
	await row(TREE, FAULT).waitFor({ state: "detached" });
	seen.left = await rows(TREE, SNAPSHOT);
	seen.notifications = await texts(NOTICE);
}

module.exports = { openRecords, newRecord, openRecord, pinRecord, saveRecord, removeRecord };
