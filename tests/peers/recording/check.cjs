// SPDX-License-Identifier: MIT
// Print what speedscope's schema of its files finds wrong with a file.
"use strict";
const fs = require("fs");
const Ajv = require("ajv");

const schema = JSON.parse(fs.readFileSync(require.resolve("speedscope/dist/release/file-format-schema.json"), "utf8"));
const validate = new Ajv({ strict: false, allErrors: true }).compile(schema);
validate(JSON.parse(fs.readFileSync(process.argv[2], "utf8")));
console.log(JSON.stringify(validate.errors || []));
