// SPDX-License-Identifier: MIT
// A session of the debugger, from the picker to the core file.
"use strict";
const fs = require("fs");
const screen = require("./screen");
const {
	CALL_STACK, CONSOLE, DISASSEMBLY, NOTICE, PICKER, VARIABLES, command, meet, row, rows, seen, shoot, texts, until,
} = screen;

const [, , pid, source, socket] = process.argv.slice(2);

// What the mark in the status bar does; nothing comes of it when it is left.
async function lookAtPicker() {
	await screen.page.locator(".statusbar-item a", { hasText: "GPU agent" }).click();
	seen.picker = await rows(PICKER, pid);
	await shoot("picker");
	await screen.page.keyboard.press("Escape");
	await row(PICKER, pid).waitFor({ state: "hidden" });
	seen.sessionsAfterEscape = await screen.page.locator(".debug-toolbar:visible").count();
}

async function attach() {
	await screen.page.locator(".monaco-editor .view-line").first().click();
	await until("picker", async () => {
		await screen.page.keyboard.press("F5");
		await row(PICKER, pid).waitFor({ timeout: 3000 });
	});
	await row(PICKER, pid).click();
	await screen.page.locator(".debug-toolbar").waitFor();
	seen.callStack = await rows(CALL_STACK, /scale.*Paused on exception/);
	seen.wave = await rows(VARIABLES, "reasons");
	await screen.page.locator(".exception-widget").waitFor();
	seen.exception = await screen.page.locator(".exception-widget").textContent();
}

async function registers() {
	await row(VARIABLES, "Wave").click();
	await screen.page.keyboard.press("ArrowLeft");
	await row(VARIABLES, "Scalar registers").click();
	await screen.page.keyboard.press("ArrowRight");
	seen.registers = await rows(VARIABLES, "s0 =");
	seen.frames = await rows(CALL_STACK, "middle");
	await shoot("session");
}

// What a name in the source is worth in the lane that is shown.  A mark of the editor is in the middle of the line.
async function hoverValue() {
	await until("hover", async () => {
		await screen.hover("* x + i", "x");
		await screen.page.locator(".debug-hover-widget .value").first().waitFor({ timeout: 10000 });
	});
	seen.hover = await texts(".debug-hover-widget .value");
	await shoot("hover", { x: 0, y: 0, width: 1360, height: 560 });
	await screen.page.keyboard.press("Escape");
}

// The values of another lane: the scope of the wave says whose they are.
async function chooseLane() {
	await command("GPU agent: Choose Lane");
	seen.lanes = await rows(PICKER, "lane 7");
	await row(PICKER, "lane 7").click();
	await row(VARIABLES, "Wave").click();
	await screen.page.keyboard.press("ArrowRight");
	seen.laneShown = await rows(VARIABLES, /^lane =7$/);
	await row(VARIABLES, "Wave").click();
	await screen.page.keyboard.press("ArrowLeft");
}

async function disassembly() {
	// A menu ignores clicks that come right after it has opened, but no keys.
	await until("menu", async () => {
		await screen.page.keyboard.press("Escape");
		await row(`${CALL_STACK} .stack-frame`, "inner").click({ button: "right" });
		await screen.page.locator(".monaco-menu .action-label", { hasText: "Open Disassembly View" }).hover({ timeout: 5000 });
		await screen.page.keyboard.press("Enter");
		await row(DISASSEMBLY, "0x").waitFor({ timeout: 5000 });
	});
	// The instruction at which the wave is has the arrow of the topmost frame beside it.
	await screen.page.locator(".disassembly-view .codicon-debug-stackframe").first().waitFor();
	seen.disassembly = await texts(DISASSEMBLY);
	seen.disassemblyHere = await screen.page.locator(DISASSEMBLY, {
		has: screen.page.locator(".codicon-debug-stackframe, .codicon-debug-stackframe-focused") }).allTextContents();
	await shoot("disassembly", { x: 0, y: 0, width: 1360, height: 560 });
}

async function debugConsole() {
	await command("Debug Console: Focus on Debug Console View");
	const line = screen.page.locator(".repl-input-wrapper .monaco-editor");
	await line.click();
	await screen.page.keyboard.type("groups");
	await screen.page.keyboard.press("Enter");
	seen.console = await rows(CONSOLE, "memory_violation");
	await screen.page.keyboard.type("pc");
	await screen.page.keyboard.press("Enter");
	seen.consolePc = await rows(CONSOLE, /^0x[0-9a-f]+$/);
	await shoot("console");
}

// Waves stand still, queues run: the editor's own Pause is not there.
async function pauseAtFault() {
	await screen.page.locator(".debug-toolbar .action-label[aria-label^=\"Pause the GPU\"]").click();
	seen.pausedAtFault = await rows(CALL_STACK, /6 x spin.*Paused/);
	await screen.page.locator(".debug-toolbar .action-label[aria-label^=\"Pause the GPU\"]").waitFor({ state: "hidden" });
}

// Of the thread that is chosen in the call stack, which is not the first one that stands still.
async function lanesOfThread() {
	const frame = row(CALL_STACK, /^spin/);
	await until("its frame", async () => {
		if (!await frame.isVisible())
			await row(CALL_STACK, /^6 x spin/).locator(".monaco-tl-twistie").click({ timeout: 5000 });
		await frame.click({ timeout: 5000 });
		await row(VARIABLES, "Wave").click({ timeout: 5000 });
		await screen.page.keyboard.press("ArrowRight");
		await row(VARIABLES, /^wave =1:0:/).waitFor({ timeout: 5000 });
	});
	await command("GPU agent: Choose Lane");
	await row(PICKER, "lane 7").waitFor();
	seen.lanesOf = await screen.page.locator(".quick-input-title").textContent();
	await screen.page.keyboard.press("Escape");
	await row(PICKER, "lane 7").waitFor({ state: "hidden" });
}

// No wave shows it.  The box is in the source, which must not lie behind the instructions.
async function deviceFault() {
	await screen.page.locator(".tab", { hasText: source }).click();
	await screen.page.keyboard.press("F5");
	await rows(CALL_STACK, /scale.*Running/);
	await meet("running");
	await rows(CALL_STACK, /Paused on exception/);
	await screen.page.locator(".exception-widget").waitFor();
	seen.deviceFault = await screen.page.locator(".exception-widget").textContent();
}

async function pauseAndContinue() {
	await screen.page.keyboard.press("F5");
	seen.running = await rows(CALL_STACK, /scale.*Running/);
	await screen.page.keyboard.press("F6");
	seen.paused = await rows(CALL_STACK, /spin.*Paused/);
}

async function leave() {
	await screen.page.keyboard.press("Shift+F5");
	await screen.page.locator(".debug-toolbar").waitFor({ state: "hidden" });
}

async function stop() {
	await leave();
	seen.notifications = await texts(NOTICE);
}

// The cause, and nothing else: no notice that a session is over which has never begun.
async function attachInVain() {
	await command("Debug: Select and Start Debugging");
	await row(PICKER, "GPU gone").click();
	await screen.page.locator(".monaco-dialog-box").waitFor();
	seen.dialogs = await texts(".monaco-dialog-box .dialog-message-row");
	await screen.page.keyboard.press("Escape");
	await screen.page.locator(".monaco-dialog-box").waitFor({ state: "hidden" });
	seen.inVain = await texts(NOTICE);
}

async function openCore() {
	await command("Debug: Select and Start Debugging");
	await row(PICKER, "GPU core").click();
	await screen.page.locator(".debug-toolbar").waitFor();
	// Rows come and go while the stack is filled.
	seen.core = await until("the frames of the core", async () => {
		const shown = await rows(CALL_STACK, /scale.*Paused on exception/);
		if (!shown.some((text) => text.startsWith("inner")))
			throw new Error(shown.join("; "));
		return shown;
	});
	await leave();
}

// Without an agent there is no picker, but a reason; a core needs none.
async function withoutAgent() {
	fs.renameSync(socket, `${socket}.away`);
	try {
		await screen.page.locator(".statusbar-item a", { hasText: "GPU agent" }).click();
		seen.without = await rows(NOTICE, "GPU agent");
		await openCore();
	} finally {
		fs.renameSync(`${socket}.away`, socket);
	}
}

// With one configuration in launch.json, nothing is asked.
async function attachToHeld() {
	await meet("open");
	await screen.page.locator(".monaco-editor .view-line").first().click();
	await until("debug toolbar", async () => {
		await screen.page.keyboard.press("F5");
		await screen.page.locator(".debug-toolbar").waitFor({ timeout: 5000 });
	});
	seen.held = await rows(CALL_STACK, "keeps 2 queues suspended");
	await screen.page.keyboard.press("F5");
	seen.heldContinue = await rows(NOTICE, "keeps 2 queues suspended");
}

async function takeControl() {
	await command("GPU agent: Take Control");
	seen.control = await rows(".statusbar-item", "This session controls the GPU process");
}

async function pause() {
	await screen.page.keyboard.press("F6");
	seen.paused = await rows(CALL_STACK, /spin.*Paused/);
}

// A tab that is closed says so, and the editor leaves; one that is gone with its machine, its network or its memory does not.
async function loseTab() {
	await meet("paused");
	const crashed = screen.page.waitForEvent("crash");
	const devtools = await screen.page.context().newCDPSession(screen.page);
	devtools.send("Page.crash").catch(() => undefined);
	await crashed;
	await meet("lost");
}

module.exports = {
	lookAtPicker, attach, registers, hoverValue, chooseLane, disassembly, debugConsole, pauseAtFault, lanesOfThread,
	deviceFault, pauseAndContinue, leave, stop, attachInVain, openCore, withoutAgent, attachToHeld, takeControl, pause, loseTab,
};
