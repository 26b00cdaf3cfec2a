/* SPDX-License-Identifier: MIT */
#ifndef WAITS_PACKET_H
#define WAITS_PACKET_H

/** @file packet.h  What the oldest packet of a queue waits for, by the values of its signals. */

#include "symbols/aql.h"
#include "waits/confidence.h"

/** What becomes of a packet. */
enum waits_packet {
	WAITS_PACKET_GOES_ON,	 /**< Nothing keeps it, or it is no packet that waits. */
	WAITS_PACKET_ALL,	 /**< Waits until all its signals are there. */
	WAITS_PACKET_ANY,	 /**< Waits until one of them is. */
	WAITS_PACKET_VALUE,	 /**< Waits until its signal has a value. */
	WAITS_PACKET_UNKNOWN,	 /**< A signal that it needs could not be read. */
};

/** The offset of the value in a signal (amd_signal_t of AMD's amd_hsa_signal.h). */
#define WAITS_SIGNAL_VALUE 8u

/** One signal's value, as it was read. */
struct waits_signal {
	int64_t value;
	bool known;
};

/**
 * Tell what a packet waits for.
 * @param signals  The values of p->dependencies, of each of them.
 * @param ret_open  Bit n: signal n is one that it waits for.
 */
enum waits_packet waits_packet_state(const struct symbols_aql_packet *p,
				     const struct waits_signal signals[SYMBOLS_AQL_DEPENDENCIES], uint32_t *ret_open);

#endif /* WAITS_PACKET_H */
