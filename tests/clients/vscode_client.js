// SPDX-License-Identifier: MIT
// vscode-jsonrpc as an editor extension uses it: Content-Length headers on one connection.
// usage: node vscode_client.js SOCKET PID [slow]      "slow" sends every byte in a write of its own
'use strict';
const assert = require('node:assert/strict');
const net = require('node:net');
const { Writable } = require('node:stream');
const rpc = require('vscode-jsonrpc/node');

const [path, pidText, mode] = process.argv.slice(2);
const pid = Number(pidText);
const watchdog = setTimeout(() => {
	console.error('vscode_client: not done in time');
	process.exit(1);
}, 60000);

// Headers and bodies arrive in pieces of one byte.
function byteByByte(socket) {
	socket.setNoDelay(true);
	return new Writable({
		write(chunk, encoding, done) {
			let i = 0;
			const next = () => (i < chunk.length ? socket.write(chunk.subarray(i, ++i), () => setImmediate(next)) : done());
			next();
		},
	});
}

async function refused(promise, code, name) {
	const error = await promise.then(() => assert.fail(`${name} expected`), (e) => e);
	assert.ok(error instanceof rpc.ResponseError, String(error));
	assert.equal(error.code, code);
	assert.equal(error.data.name, name);
	assert.ok(error.message.length > 0);
}

async function main() {
	const socket = net.connect(path);
	const out = mode === 'slow' ? byteByByte(socket) : socket;
	const c = rpc.createMessageConnection(new rpc.StreamMessageReader(socket), new rpc.StreamMessageWriter(out));
	const ended = new Promise((resolve) => c.onNotification('session.ended', resolve));
	const unexpected = [];
	c.onUnhandledNotification((m) => unexpected.push(m.method));
	c.onError(([error]) => unexpected.push(String(error)));
	c.listen();

	const hello = await c.sendRequest('agent.hello', { client: 'vscode-jsonrpc' });
	assert.match(hello.protocol, /^1\./);
	assert.ok(hello.limits.request_bytes > 0);
	const { processes } = await c.sendRequest('process.list');
	assert.ok(processes.some((p) => p.pid === pid && p.queues === 4 && p.debuggable), JSON.stringify(processes));

	const { session } = await c.sendRequest('session.attach', { pid });
	const snapshot = await c.sendRequest('gpu.snapshot', { session });
	assert.equal(snapshot.complete, true);
	assert.equal(snapshot.queues.length, 4);

	// Many requests under way at once, answered by whoever is ready first.
	const many = await Promise.all(Array.from({ length: 50 }, (_, i) =>
		i % 2 ? c.sendRequest('gpu.queues', { session }) : c.sendRequest('agent.status')));
	assert.ok(many.every((r, i) => (i % 2 ? r.queues.length === 4 : r.connections >= 1)));

	await refused(c.sendRequest('gpu.queues', { session: 'nonsense' }), -32006, 'no_such_session');
	await refused(c.sendRequest('session.attach', { pid: 4194304 }), -32001, 'no_such_process');
	await refused(c.sendRequest('session.attach', { pid: 'one' }), rpc.ErrorCodes.InvalidParams, 'invalid_params');
	await refused(c.sendRequest('no.such.method'), rpc.ErrorCodes.MethodNotFound, 'method_not_found');

	// A cancelled request makes the library send a notification that the agent does not know.
	const cancel = new rpc.CancellationTokenSource();
	const cancelled = c.sendRequest('gpu.devices', { session }, cancel.token);
	cancel.cancel();
	assert.equal((await cancelled).devices.length, 2);

	assert.deepEqual(await c.sendRequest('session.detach', { session }), { ended: true });
	const again = await c.sendRequest('session.attach', { pid });
	process.kill(pid, 'SIGKILL');
	assert.deepEqual(await ended, { session: again.session, pid, reason: 'exited' });
	await refused(c.sendRequest('gpu.queues', { session: again.session }), -32006, 'no_such_session');
	assert.deepEqual(unexpected, []);
	c.end();
	socket.end();
	clearTimeout(watchdog);
	console.log('done');
}

main().catch((error) => {
	console.error(error);
	process.exit(1);
});
