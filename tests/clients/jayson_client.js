// SPDX-License-Identifier: MIT
// jayson: its TCP client makes a connection for each request; a session, which lives as long as its
// connection, is used through the client that takes a transport function.
// usage: node jayson_client.js SOCKET PID
'use strict';
const assert = require('node:assert/strict');
const net = require('node:net');
const jayson = require('jayson/promise');
const BrowserClient = require('jayson/promise/lib/client/browser');

const [path, pidText] = process.argv.slice(2);
const pid = Number(pidText);
const watchdog = setTimeout(() => {
	console.error('jayson_client: not done in time');
	process.exit(1);
}, 60000);

// One connection, one line per message; replies find their caller by id.
function transport(socket, onNotification) {
	const waiting = new Map();
	let text = '';
	socket.setEncoding('utf8').on('data', (chunk) => {
		text += chunk;
		for (let end; (end = text.indexOf('\n')) >= 0; text = text.slice(end + 1)) {
			const line = text.slice(0, end);
			const message = JSON.parse(line);
			const done = waiting.get(Array.isArray(message) ? message[0].id : message.id);
			if (done)
				done(line);
			else
				onNotification(message);
		}
	});
	return (request) => new Promise((resolve) => {
		const message = JSON.parse(request);
		waiting.set(Array.isArray(message) ? message[0].id : message.id, resolve);
		socket.write(request + '\n');
	});
}

async function result(client, method, params) {
	const reply = await client.request(method, params);
	assert.equal(reply.error, undefined, JSON.stringify(reply));
	return reply.result;
}

async function refused(client, method, params, code, name) {
	const { error } = await client.request(method, params);
	assert.equal(error && error.code, code);
	assert.equal(error.data.name, name);
}

async function eachRequestItsOwnConnection() {
	const client = jayson.Client.tcp({ path });
	assert.match((await result(client, 'agent.hello', { client: 'jayson' })).protocol, /^1\./);
	const { processes } = await result(client, 'process.list', {});
	assert.ok(processes.some((p) => p.pid === pid && p.queues === 4), JSON.stringify(processes));
	assert.equal((await result(client, 'process.doctor', { pid })).ok, true);
	await refused(client, 'session.attach', { pid: 4194304 }, -32001, 'no_such_process');
	await refused(client, 'no.such.method', {}, -32601, 'method_not_found');
	// The library's batches; their replies may come in any order.
	const replies = await client.request([
		client.request('agent.hello', {}, undefined, false),
		client.request('agent.status', {}, undefined, false),
		client.request('session.attach', { pid: 0 }, undefined, false),
	]);
	assert.equal(replies.length, 3);
	assert.deepEqual(replies.filter((r) => r.error).map((r) => r.error.code), [-32602]);
	// A session that nobody holds is over.
	const { session } = await result(client, 'session.attach', { pid });
	assert.ok(session);
	await refused(client, 'gpu.queues', { session }, -32006, 'no_such_session');
}

async function oneConnection() {
	const socket = net.connect(path);
	let ended;
	const end = new Promise((resolve) => { ended = resolve; });
	const client = new BrowserClient(transport(socket, (m) => m.method === 'session.ended' && ended(m.params)), {});
	// The session of the connection that has just gone may still be ending.
	const { session } = await result(client, 'session.attach', { pid });
	const snapshot = await result(client, 'gpu.snapshot', { session });
	assert.equal(snapshot.complete, true);
	assert.equal(snapshot.queues.length, 4);
	await refused(client, 'gpu.queues', { session: 'nonsense' }, -32006, 'no_such_session');
	assert.deepEqual(await result(client, 'session.detach', { session }), { ended: true });
	const again = await result(client, 'session.attach', { pid });
	process.kill(pid, 'SIGKILL');
	assert.deepEqual(await end, { session: again.session, pid, reason: 'exited' });
	socket.end();
}

eachRequestItsOwnConnection().then(oneConnection).then(() => {
	clearTimeout(watchdog);
	console.log('done');
}).catch((error) => {
	console.error(error);
	process.exit(1);
});
