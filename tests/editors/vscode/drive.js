// SPDX-License-Identifier: MIT
// Uses VS Code in a browser as a person does, and writes down what was on the screen.
// Where others have to see or do something, it says a word and waits for a line.
// usage: node drive.js STORY URL PID SOURCE SOCKET OUT   OUT/seen-STORY.json: texts by name; OUT/*.png: pictures
"use strict";
const fs = require("fs");
const { chromium } = require("playwright-core");
const compare = require("./compare");
const cores = require("./cores");
const lanes = require("./lanes");
const records = require("./records");
const running = require("./running");
const screen = require("./screen");
const session = require("./session");
const view = require("./view");
const watch = require("./watch");

const [story, , , , , out] = process.argv.slice(2);
const FLAGS = [
	"--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update",
	"--disable-sync", "--no-first-run", "--disable-dev-shm-usage",
	"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

const STEPS = { ...screen.steps, ...compare, ...cores, ...lanes, ...records, ...running, ...session, ...view, ...watch };
const STORIES = {
	running: ["openWorkbench", "openView", "attachToRunning", "faultAfterAttach", "watchAtFault", "watchWhileRunning",
		"hiddenSources"],
	session: ["openWorkbench", "lookAtPicker", "attach", "registers", "hoverValue", "chooseLane", "disassembly", "debugConsole",
		"pauseAtFault", "lanesOfThread", "pauseAndContinue", "deviceFault", "stop", "attachInVain", "withoutAgent"],
	abandoned: ["openWorkbench", "attachToHeld", "takeControl", "pause", "loseTab"],
	abandonedView: ["openWorkbench", "attachToHeld", "takeControl", "openView", "pauseAll", "loseTab"],
	compare: ["openWorkbench", "compareLater", "saveSnapshots", "compareFiles", "handOver"],
	cores: ["openWorkbench", "openByDoubleClick", "startAgain", "openByMenu", "badLinks", "coreByLink", "attachByLink"],
	lanes: ["openWorkbench", "openView", "attachFromView", "pauseAll", "lanesOfWave", "columnsOfLanes", "laneFromTable",
		"lanesOfFrame", "lanesWhileRunning", "leaveView"],
	lanesOfWarp: ["openWorkbench", "openView", "attachToWarps", "lanesOfWarp", "leaveView"],
	many: ["openWorkbench", "openView", "pageOfMany", "leaveView"],
	records: ["openWorkbench", "openRecords", "newRecord", "openRecord", "pinRecord", "saveRecord", "removeRecord"],
	watch: ["openWorkbench", "noticeOfException", "openFromNotice", "attachFromNotice", "endedSession"],
	view: ["openWorkbench", "openView", "attachFromView", "goToWhatRuns", "pauseAll", "goToLane", "leaveView"],
};

async function main() {
	const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
	try {
		screen.setPage(await browser.newPage({ viewport: { width: 1360, height: 900 } }));
		for (const name of STORIES[story]) {
			const start = Date.now();
			try {
				await STEPS[name]();
			} catch (error) {
				await screen.shoot("failed").catch(() => undefined);
				throw new Error(`${name}: ${error.message}\n(${out} has failed.png and seen-${story}.json)`);
			}
			console.error(`${name}: ${Date.now() - start} ms`);
		}
	} finally {
		fs.writeFileSync(`${out}/seen-${story}.json`, JSON.stringify(screen.seen, null, 1));
		await browser.close();
		process.stdin.destroy();
	}
}

main().catch((error) => {
	console.error(error.message);
	process.exit(1);
});
