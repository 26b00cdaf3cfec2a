/* SPDX-License-Identifier: MIT */
#ifndef BASE_LOG_H
#define BASE_LOG_H

/**
 * @file log.h
 * Log sink of the programs; libraries never call it.
 *
 * One line per event goes to stderr, with a syslog prefix (`<6>`) when stderr is the journal, plain
 * otherwise.  Structured records go to the journal socket when it exists: log_record() adds
 * `GPU_AGENT_*` fields and a MESSAGE_ID, and prints the message as a line elsewhere.
 */

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/**
 * Fixed ids of our journal records, one per kind of event; gpu-agentd(8) lists the fields of each.
 */
#define LOG_MESSAGE_ATTACH  "6f0d5d8a0c2b4c0f9d4b7c1b8e6a4f21"
#define LOG_MESSAGE_CONTROL "c3b1f0a97f0e4a5a8a6f2d1f5a0b7e64"
#define LOG_MESSAGE_READ    "7a3f0c9be15d4826a0c4d87f12b693e5"
#define LOG_MESSAGE_USES    "d18b4f62970e4c3ab5f3096e7c21da84"
#define LOG_MESSAGE_TAKEN   "0d1e6c52b8f34a7c9c1f57e2a40d6b93"
#define LOG_MESSAGE_END	    "9a5d2c7e4b1849d3b0e6f8a17c2d3e50"
#define LOG_MESSAGE_RECORD  "5e0e6b7c3d9f4b1e8c27a4d6f0319b58"
#define LOG_MESSAGE_RECORD_USED "41c7d2be60fa4d38a95e08b17f3c6d92"
#define LOG_MESSAGE_REFUSED "3c8e1d57a90b4f26b7d4e6012f95ac48"
#define LOG_MESSAGE_FALLEN  "e27b60f4c5134d8f9a1c83d07e4b5629"
#define LOG_MESSAGE_HOOK    "b41e7d0c9a624f3db08c51e27f96a3d8"

/**
 * One field of a journal record.  A list of them ends with a NULL name; a field whose value is NULL
 * or "" is left out.
 */
struct log_field {
	const char *name;
	const char *value;
};

/**
 * Set up the sink.  Until this is called, lines up to LOG_LEVEL_INFO go to stderr as "gpu-agent".
 * @param ident      Program name that is put in front of plain lines; borrowed for ever.
 * @param max_level  Events of a higher level (less important ones) are dropped.
 */
void log_init(const char *ident, enum log_level max_level);
/** Log one line, cut to about 1000 bytes.  Characters that a terminal obeys are replaced. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/**
 * Log an event with fields: as a record of the journal, or only its message as a line elsewhere.
 * @param message_id  32 hexadecimal digits, fixed for each kind of event.
 * @param fields      Ends with a NULL name; may be NULL.
 */
void log_record(enum log_level level, const char *message_id, const struct log_field *fields,
		const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#define log_error(...)	 log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)	 log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)	 log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif /* BASE_LOG_H */
