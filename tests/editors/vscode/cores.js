// SPDX-License-Identifier: MIT
// Core files: opened in the explorer and by links.
"use strict";
const screen = require("./screen");
const { CALL_STACK, DIALOG, NOTICE, command, disconnect, mark, place, report, row, rows, seen, shoot, texts, until } = screen;

const [, , pid] = process.argv.slice(2);
const FILES = ".explorer-folders-view .monaco-list-row";
const PAUSED = /scale.*Paused on exception/;

const file = (name) => row(FILES, name);

async function openByDoubleClick() {
	await file("one.gpucore").dblclick();
	seen.doubleClick = await rows(CALL_STACK, PAUSED);
	await disconnect();
	await screen.page.locator(".tab", { hasText: "one.gpucore" }).click();
	seen.page = await report("memory violation: 2 waves");
	await shoot("core");
}

// The tab is there again; nobody has opened the file.
async function startAgain() {
	await screen.page.reload();
	await screen.page.locator(".statusbar-item", { hasText: "GPU agent" }).waitFor();
	await screen.page.locator(".tab", { hasText: "one.gpucore" }).click();
	await report("memory violation: 2 waves");
	seen.afterStart = await texts(".debug-toolbar:visible");
	const frame = screen.page.frameLocator("iframe.webview").frameLocator("#active-frame");
	await frame.locator("a", { hasText: "Open in the debugger" }).click();
	seen.fromPage = await rows(CALL_STACK, PAUSED);
	await disconnect();
}

async function openByMenu() {
	await mark("Explorer");
	await until("menu", async () => {
		await screen.page.keyboard.press("Escape");
		await file("spin.cl").click({ button: "right" });
		await screen.page.locator(".monaco-menu .action-label", { hasText: "Copy Path" }).first().waitFor({ timeout: 5000 });
		seen.menuOfSource = await texts(".monaco-menu .action-label");
		await screen.page.keyboard.press("Escape");
		await file("core.two.4242").click({ button: "right" });
		await screen.page.locator(".monaco-menu .action-label", { hasText: "Open a GPU Core File" }).hover({ timeout: 5000 });
		await screen.page.keyboard.press("Enter");
		await screen.page.locator(".debug-toolbar").waitFor({ timeout: 10000 });
	});
	await command("View: Show Run and Debug");
	seen.menu = await rows(CALL_STACK, PAUSED);
	await disconnect();
}

// As the editor takes a link that was clicked elsewhere.
async function link(text) {
	await command("Developer: Open URL");
	const input = screen.page.locator(".quick-input-widget input.input");
	await input.fill(`code-oss://gpu-agent.gpu-agent${text}`);
	await screen.page.keyboard.press("Enter");
	// The editor asks for itself, whatever the extension does.
	await screen.page.locator(DIALOG, { hasText: "to open this URI" }).waitFor();
	await screen.page.locator(`${DIALOG} .monaco-button`, { hasText: "Open" }).click();
}

async function answer(name, button) {
	await screen.page.locator(DIALOG, { hasText: "A link asks" }).waitFor();
	seen[name] = await texts(`${DIALOG} .dialog-message-container`);
	await screen.page.locator(`${DIALOG} .monaco-button`, { hasText: button }).click();
	await screen.page.locator(DIALOG).waitFor({ state: "hidden" });
}

async function badLinks() {
	await link("/core?path=one.gpucore");
	await rows(NOTICE, "no absolute path");
	await link(`/core?path=${place()}`);
	await rows(NOTICE, "is no file");
	await link(`/attach?pid=${pid}&socket=${place()}/other.sock`);
	seen.socketOfOther = await rows(NOTICE, "belongs to another user");
	await link(`/attach?pid=${pid}&socket=${place()}/one.gpucore`);
	seen.badLinks = await rows(NOTICE, "socket is none");
	seen.afterBadLinks = await texts(".debug-toolbar:visible");
	await command("Notifications: Clear All Notifications");
}

async function coreByLink() {
	await link(`/core?path=${place()}/one.gpucore`);
	await answer("coreLink", "Open");
	seen.link = await rows(CALL_STACK, PAUSED);
	await disconnect();
}

async function attachByLink() {
	await link(`/attach?pid=${pid}`);
	await answer("refused", "Cancel");
	await link(`/attach?pid=${pid}`);
	await answer("attachLink", "Attach");
	seen.attached = await rows(CALL_STACK, PAUSED);
	await disconnect();
	seen.notifications = await texts(NOTICE);
}

module.exports = { openByDoubleClick, startAgain, openByMenu, badLinks, coreByLink, attachByLink };
