// SPDX-License-Identifier: MIT
// Runs functions one after the other, tells which of them fail, and how many there are.
"use strict";

module.exports = async (tests) => {
	for (const [name, test] of Object.entries(tests))
		await test().catch((error) => {
			console.error(`${name}: ${error.message}`);
			process.exitCode = 1;
		});
	console.log(Object.keys(tests).length);
};
