// SPDX-License-Identifier: MIT
// Microsoft's test client for debug adapters on gpu-agentctl dap.
// Environment: ADAPTER (gpu-agentctl), PID (of a simulated GPU process with waves in a kernel), CORE_AMD and
// CORE_NVIDIA (core files of such processes, the second one with an exception).
"use strict";
const assert = require("assert");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const pid = Number(process.env.PID);

describe("gpu-agentctl dap", function () {
	this.timeout(60000);
	let client, left;

	beforeEach(async () => {
		left = false;
		client = new DebugClient(process.env.ADAPTER, "dap", "gpu-agent");
		client.defaultTimeout = 30000;
		await client.start();
	});
	// stop() disconnects; an adapter that was left already answers no more.
	afterEach(() => (left ? client.stopAdapter() : client.stop()));

	async function attach(more) {
		await Promise.all([
			client.waitForEvent("initialized").then(() => client.configurationDoneRequest()),
			client.initializeRequest().then(() => client.attachRequest({ pid, ...more })),
		]);
	}

	async function pause() {
		const stopped = client.waitForEvent("stopped");
		await client.pauseRequest({ threadId: 1 });
		return (await stopped).body;
	}

	async function topFrame() {
		const stack = await client.stackTraceRequest({ threadId: 1, startFrame: 0, levels: 20 });
		return stack.body.stackFrames[0];
	}

	it("tells its capabilities", async () => {
		const { body } = await client.initializeRequest();
		for (const name of ["ReadMemory", "Disassemble", "ExceptionInfo", "Cancel", "ConfigurationDone"])
			assert.strictEqual(body[`supports${name}Request`], true, name);
		assert(body.exceptionBreakpointFilters.length > 0);
	});

	it("attaches by processId, a string, and ignores what it does not know", async () => {
		await Promise.all([
			client.waitForEvent("initialized").then(() => client.configurationDoneRequest()),
			client.initializeRequest().then(() => client.attachRequest({ processId: String(pid), __sessionId: "x" })),
		]);
		assert.strictEqual((await client.threadsRequest()).body.threads.length, 1);
	});

	it("shows a stopped group from thread to lane", async () => {
		await attach();
		const stopped = await pause();
		assert.strictEqual(stopped.reason, "pause");
		assert.strictEqual(stopped.threadId, 1);
		const frame = await topFrame();
		assert.strictEqual(frame.name, "spin");
		const { scopes } = (await client.scopesRequest({ frameId: frame.id })).body;
		assert.deepStrictEqual(scopes.map((s) => s.name), ["Wave", "Arguments", "Built-ins", "Scalar registers", "Vector registers", "Lanes", "LDS",
			"Group statistics", "Why"]);
		for (const scope of scopes) {
			const { variables } = (await client.variablesRequest({ variablesReference: scope.variablesReference })).body;
			assert(variables.length > 0, scope.name);
		}
		await client.continueRequest({ threadId: 1 });
	});

	it("reads memory with a negative offset, and less than asked for", async () => {
		await attach();
		const frame = await topFrame();
		const read = await client.customRequest("readMemory", {
			memoryReference: frame.instructionPointerReference, offset: -8, count: 24 });
		assert.strictEqual(Buffer.from(read.body.data, "base64").length, 24);
		assert.strictEqual(BigInt(read.body.address), BigInt(frame.instructionPointerReference) - 8n);
		const none = await client.customRequest("readMemory", { memoryReference: "0x0", count: 16 });
		assert.strictEqual(none.body.unreadableBytes, 16);
	});

	it("disassembles exactly as much as an editor asks for", async () => {
		await attach();
		const memoryReference = (await topFrame()).instructionPointerReference;
		for (const [instructionOffset, instructionCount] of [[-200, 400], [0, 50]]) {
			const { body } = await client.customRequest("disassemble", {
				memoryReference, offset: 0, instructionOffset, instructionCount, resolveSymbols: true });
			assert.strictEqual(body.instructions.length, instructionCount);
			assert.strictEqual(body.instructions[-instructionOffset].address, memoryReference);
		}
	});

	it("refuses with a reason", async () => {
		await attach();
		await assert.rejects(client.nextRequest({ threadId: 1 }), /stepped/);
		await assert.rejects(client.customRequest("noSuchRequest"), /unknown request/);
		await assert.rejects(client.variablesRequest({ variablesReference: 7 }), /out of date/);
		await assert.rejects(client.exceptionInfoRequest({ threadId: 1 }), /no exception/);
		await assert.rejects(client.evaluateRequest({ expression: "nonsense" }), /no register/);
	});

	it("sets data breakpoints", async () => {
		await attach();
		const info = await client.customRequest("dataBreakpointInfo", { name: "0x7f0000001000", bytes: 64, asAddress: true });
		const set = await client.customRequest("setDataBreakpoints", { breakpoints: [{ dataId: info.body.dataId }] });
		assert.deepStrictEqual(set.body.breakpoints, [{ verified: true }]);
		await client.customRequest("setDataBreakpoints", { breakpoints: [] });
	});

	for (const [vendor, text] of [["AMD", "halted|debugger|^$"], ["NVIDIA", "CUDA_EXCEPTION_14"]])
		it(`opens a core of ${vendor}`, async () => {
			const stopped = client.waitForEvent("stopped");
			await Promise.all([
				client.waitForEvent("initialized").then(() => client.configurationDoneRequest()),
				client.initializeRequest().then(() => client.attachRequest({ coreFile: process.env[`CORE_${vendor}`] })),
			]);
			const { body } = await stopped;
			assert(body.allThreadsStopped);
			assert.match(body.text || "", new RegExp(text));
			const frame = await topFrame();
			const { scopes } = (await client.scopesRequest({ frameId: frame.id })).body;
			const { variables } = (await client.variablesRequest({ variablesReference: scopes[0].variablesReference })).body;
			// Where a warp faulted, which is not where it stands now, is a register of its own on NVIDIA devices.
			const at = variables.find((v) => v.name === "error_pc") || variables.find((v) => v.name === "pc");
			assert.strictEqual(BigInt(at.value), BigInt(frame.instructionPointerReference));
			const lines = await client.customRequest("disassemble", {
				memoryReference: frame.instructionPointerReference, instructionOffset: -200, instructionCount: 400 });
			assert.strictEqual(lines.body.instructions.length, 400);
			assert.notStrictEqual(lines.body.instructions[200].presentationHint, "invalid");
			await assert.rejects(client.pauseRequest({ threadId: 1 }), /nothing runs/);
			await assert.rejects(client.continueRequest({ threadId: 1 }), /nothing runs/);
		});

	it("cancels or answers, and goes on", async () => {
		await attach();
		const waves = client.customRequest("gpuAgent/waves", { threadId: 1 });
		const registers = client.evaluateRequest({ expression: "registers", context: "repl" })
			.then(({ body }) => assert.match(body.result, /exec/), (err) => assert.match(err.message, /cancelled/));
		await client.customRequest("cancel", { requestId: client.sequence - 1 });
		await Promise.all([waves, registers]);
		await pause();
		await client.continueRequest({ threadId: 1 });
	});

	it("ends a session without ending the process", async () => {
		await attach();
		await pause();
		await client.disconnectRequest({ terminateDebuggee: true });
		left = true;
		process.kill(pid, 0);
	});
});
