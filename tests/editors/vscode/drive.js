// SPDX-License-Identifier: MIT
// Uses VS Code in a browser as a person does, and writes down what was on the screen.
// Where others have to see or do something, it says a word and waits for a line.
// usage: node drive.js STORY URL PID SOURCE SOCKET OUT   OUT/seen.json: texts by name; OUT/*.png: pictures
"use strict";
const fs = require("fs");
const readline = require("readline");
const { chromium } = require("playwright-core");

const [story, url, pid, source, socket, out] = process.argv.slice(2);
const PATIENCE = 120000; // a deadline only decides how long a failure takes
const FLAGS = [
	"--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update",
	"--disable-sync", "--no-first-run", "--disable-dev-shm-usage",
	"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];
const CALL_STACK = ".debug-call-stack .monaco-list-row";
const VARIABLES = ".debug-variables .monaco-list-row";
const DISASSEMBLY = ".disassembly-view .monaco-list-row";
const CONSOLE = ".repl .monaco-list-row";
const NOTICE = ".notification-list-item-message";
const PICKER = ".quick-input-widget .monaco-list-row";

const seen = {};
let page;

const texts = (selector) => page.locator(selector).allTextContents();
const row = (selector, text) => page.locator(selector, { hasText: text }).first();
const shoot = (name, clip) => page.screenshot({ path: `${out}/${name}.png`, clip });

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
	await page.keyboard.press("F1");
	const input = page.locator(".quick-input-widget input.input");
	await input.waitFor();
	await input.fill(`>${name}`);
	await row(PICKER, name).click();
}

async function openWorkbench() {
	await page.goto(url);
	await page.locator(".monaco-workbench").waitFor();
	// The extension's own mark: before it is there, keys do nothing.
	await page.locator(".statusbar-item", { hasText: "GPU agent" }).waitFor();
	await row(".explorer-folders-view .monaco-list-row", source).dblclick();
	await page.locator(".monaco-editor .view-line").first().waitFor();
}

// What the mark in the status bar does; nothing comes of it when it is left.
async function lookAtPicker() {
	await page.locator(".statusbar-item a", { hasText: "GPU agent" }).click();
	seen.picker = await rows(PICKER, pid);
	await shoot("picker");
	await page.keyboard.press("Escape");
	await row(PICKER, pid).waitFor({ state: "hidden" });
	seen.sessionsAfterEscape = await page.locator(".debug-toolbar:visible").count();
}

async function attach() {
	await page.locator(".monaco-editor .view-line").first().click();
	await until("picker", async () => {
		await page.keyboard.press("F5");
		await row(PICKER, pid).waitFor({ timeout: 3000 });
	});
	await row(PICKER, pid).click();
	await page.locator(".debug-toolbar").waitFor();
	seen.callStack = await rows(CALL_STACK, /scale.*Paused on exception/);
	seen.wave = await rows(VARIABLES, "reasons");
	await page.locator(".exception-widget").waitFor();
	seen.exception = await page.locator(".exception-widget").textContent();
}

async function registers() {
	await row(VARIABLES, "Wave").click();
	await page.keyboard.press("ArrowLeft");
	await row(VARIABLES, "Scalar registers").click();
	await page.keyboard.press("ArrowRight");
	seen.registers = await rows(VARIABLES, "s0 =");
	seen.frames = await rows(CALL_STACK, "middle");
	await shoot("session");
}

// The values of another lane: the scope of the wave says whose they are.
async function chooseLane() {
	await command("GPU agent: Choose Lane");
	seen.lanes = await rows(PICKER, "lane 7");
	await row(PICKER, "lane 7").click();
	await row(VARIABLES, "Wave").click();
	await page.keyboard.press("ArrowRight");
	seen.laneShown = await rows(VARIABLES, /^lane =7$/);
	await row(VARIABLES, "Wave").click();
	await page.keyboard.press("ArrowLeft");
}

async function disassembly() {
	// A menu ignores clicks that come right after it has opened, but no keys.
	await until("menu", async () => {
		await page.keyboard.press("Escape");
		await row(`${CALL_STACK} .stack-frame`, "inner").click({ button: "right" });
		await page.locator(".monaco-menu .action-label", { hasText: "Open Disassembly View" }).hover({ timeout: 5000 });
		await page.keyboard.press("Enter");
		await row(DISASSEMBLY, "0x").waitFor({ timeout: 5000 });
	});
	// The instruction at which the wave is has the arrow of the topmost frame beside it.
	await page.locator(".disassembly-view .codicon-debug-stackframe").first().waitFor();
	seen.disassembly = await texts(DISASSEMBLY);
	seen.disassemblyHere = await page.locator(DISASSEMBLY, {
		has: page.locator(".codicon-debug-stackframe, .codicon-debug-stackframe-focused") }).allTextContents();
	await shoot("disassembly", { x: 0, y: 0, width: 1360, height: 560 });
}

async function debugConsole() {
	await command("Debug Console: Focus on Debug Console View");
	const line = page.locator(".repl-input-wrapper .monaco-editor");
	await line.click();
	await page.keyboard.type("groups");
	await page.keyboard.press("Enter");
	seen.console = await rows(CONSOLE, "memory_violation");
	await page.keyboard.type("pc");
	await page.keyboard.press("Enter");
	seen.consolePc = await rows(CONSOLE, /^0x[0-9a-f]+$/);
	await shoot("console");
}

// Waves stand still, queues run: the editor's own Pause is not there.
async function pauseAtFault() {
	await page.locator(".debug-toolbar .action-label[aria-label^=\"Pause the GPU\"]").click();
	seen.pausedAtFault = await rows(CALL_STACK, /6 x spin.*Paused/);
	await page.locator(".debug-toolbar .action-label[aria-label^=\"Pause the GPU\"]").waitFor({ state: "hidden" });
}

// No wave shows it.  The box is in the source, which must not lie behind the instructions.
async function deviceFault() {
	await page.locator(".tab", { hasText: source }).click();
	await page.keyboard.press("F5");
	await rows(CALL_STACK, /scale.*Running/);
	await meet("running");
	await rows(CALL_STACK, /Paused on exception/);
	await page.locator(".exception-widget").waitFor();
	seen.deviceFault = await page.locator(".exception-widget").textContent();
}

async function pauseAndContinue() {
	await page.keyboard.press("F5");
	seen.running = await rows(CALL_STACK, /scale.*Running/);
	await page.keyboard.press("F6");
	seen.paused = await rows(CALL_STACK, /spin.*Paused/);
}

async function leave() {
	await page.keyboard.press("Shift+F5");
	await page.locator(".debug-toolbar").waitFor({ state: "hidden" });
}

async function stop() {
	await leave();
	seen.notifications = await texts(NOTICE);
}

// The cause, and nothing else: no notice that a session is over which has never begun.
async function attachInVain() {
	await command("Debug: Select and Start Debugging");
	await row(PICKER, "GPU gone").click();
	await page.locator(".monaco-dialog-box").waitFor();
	seen.dialogs = await texts(".monaco-dialog-box .dialog-message-row");
	await page.keyboard.press("Escape");
	await page.locator(".monaco-dialog-box").waitFor({ state: "hidden" });
	seen.inVain = await texts(NOTICE);
}

async function openCore() {
	await command("Debug: Select and Start Debugging");
	await row(PICKER, "GPU core").click();
	await page.locator(".debug-toolbar").waitFor();
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
		await page.locator(".statusbar-item a", { hasText: "GPU agent" }).click();
		seen.without = await rows(NOTICE, "GPU agent");
		await openCore();
	} finally {
		fs.renameSync(`${socket}.away`, socket);
	}
}

// With one configuration in launch.json, nothing is asked.
async function attachToHeld() {
	await meet("open");
	await page.locator(".monaco-editor .view-line").first().click();
	await until("debug toolbar", async () => {
		await page.keyboard.press("F5");
		await page.locator(".debug-toolbar").waitFor({ timeout: 5000 });
	});
	seen.held = await rows(CALL_STACK, "keeps 2 queues suspended");
	await page.keyboard.press("F5");
	seen.heldContinue = await rows(NOTICE, "keeps 2 queues suspended");
}

async function takeControl() {
	await command("GPU agent: Take Control");
	seen.control = await rows(".statusbar-item", "This session controls the GPU process");
}

// A tab that is closed says so, and the editor leaves; one that is gone with its machine, its network or its memory does not.
async function pauseAndLoseTab() {
	await page.keyboard.press("F6");
	seen.paused = await rows(CALL_STACK, /spin.*Paused/);
	await meet("paused");
	const crashed = page.waitForEvent("crash");
	const devtools = await page.context().newCDPSession(page);
	devtools.send("Page.crash").catch(() => undefined);
	await crashed;
	await meet("lost");
}

const STORIES = {
	session: [openWorkbench, lookAtPicker, attach, registers, chooseLane, disassembly, debugConsole, pauseAtFault, pauseAndContinue,
		deviceFault, stop, attachInVain, withoutAgent],
	abandoned: [openWorkbench, attachToHeld, takeControl, pauseAndLoseTab],
};

async function main() {
	const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
	try {
		page = await browser.newPage({ viewport: { width: 1360, height: 900 } });
		page.setDefaultTimeout(PATIENCE);
		for (const step of STORIES[story]) {
			const start = Date.now();
			try {
				await step();
			} catch (error) {
				await shoot("failed").catch(() => undefined);
				throw new Error(`${step.name}: ${error.message}\n(${out} has failed.png and seen.json)`);
			}
			console.error(`${step.name}: ${Date.now() - start} ms`);
		}
	} finally {
		fs.writeFileSync(`${out}/seen.json`, JSON.stringify(seen, null, 1));
		await browser.close();
		process.stdin.destroy();
	}
}

main().catch((error) => {
	console.error(error.message);
	process.exit(1);
});
