/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_VENDOR_WORDS_H
#define CTL_DOCUMENT_VENDOR_WORDS_H

/**
 * @file vendor_words.h
 * The words of one vendor's users: what the protocol calls a wave is a warp to those of NVIDIA.
 *
 * The protocol, JSON documents and options have one neutral word for each thing.  Text for people
 * has the vendor's, and command lines accept both.
 */

#include "base/out.h"
#include "rpc_gen.h"

/**
 * What users of a vendor call a thing.
 * @param word  The protocol's word, as `wave` or `workgroups`, or a column's title, as `WAVES`.
 * @return a constant: `warp`, `blocks`, `WARPS`; @p word itself where the vendor has no other.
 */
const char *vendor_word(enum rpc_vendor vendor, const char *word);

/**
 * Append a sentence that has the protocol's words, with the vendor's.  Only whole words are replaced,
 * in lower case, with a punctuation mark behind them or none: names of kernels and files stay as they
 * are, although a part of them may be such a word.
 */
void vendor_sentence(struct out *o, enum rpc_vendor vendor, const char *text);

/**
 * The protocol's word for one that a vendor's user may have given: `wave` for `warp`, `lds` for
 * `shared`.
 * @return a constant; @p word itself where it is nobody's other word.
 */
const char *vendor_word_neutral(const char *word);

#endif /* CTL_DOCUMENT_VENDOR_WORDS_H */
