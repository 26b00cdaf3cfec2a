// SPDX-License-Identifier: MIT
// Notices of exceptions in processes that nobody debugs.
"use strict";
const screen = require("./screen");
const { CALL_STACK, NOTICE, meet, row, rows, seen, shoot, texts } = screen;

const ITEM = ".notification-list-item";
const about = (text) => screen.page.locator(ITEM, { hasText: text }).first();
const button = (text, name) => about(text).locator(".monaco-button", { hasText: name });

async function noticeOfException() {
	await meet("fault");
	seen.notice = await rows(NOTICE, "GPU exception in process");
	seen.warning = await about("GPU exception").locator(".codicon-warning").count();
	seen.buttons = await about("GPU exception").locator(".monaco-button").allTextContents();
	await shoot("exception");
	await meet("again");
	seen.notices = await texts(NOTICE);
}

async function openFromNotice() {
	await button("GPU exception", "Open Record").click();
	seen.record = await rows(CALL_STACK, /scale.*Paused on exception/);
	await screen.disconnect();
}

async function attachFromNotice() {
	await meet("other");
	await row(NOTICE, "GPU exception in process").waitFor();
	seen.other = await texts(NOTICE);
	await button("GPU exception", "Attach").click();
	seen.attached = await rows(CALL_STACK, /scale/);
	await meet("debugged");
	await screen.disconnect();
}

async function endedSession() {
	await meet("ended");
	seen.left = await texts(NOTICE);
}

module.exports = { noticeOfException, openFromNotice, attachFromNotice, endedSession };
