/* SPDX-License-Identifier: MIT */
/* Types by their names, as C's declarations, the demangler and OpenCL's metadata write them. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "values/scalar.h"

/* A name that is a type by itself. */
struct named {
	const char *name;
	enum values_encoding encoding;
	uint32_t size;
};

static const struct named named[] = {
	{ "bool", VALUES_BOOL, 1 },
	{ "_Bool", VALUES_BOOL, 1 },
	{ "float", VALUES_FLOAT, 4 },
	{ "half", VALUES_FLOAT, 2 },
	{ "__half", VALUES_FLOAT, 2 },
	{ "_Float16", VALUES_FLOAT, 2 },
	{ "__fp16", VALUES_FLOAT, 2 },
	{ "_Float32", VALUES_FLOAT, 4 },
	{ "_Float64", VALUES_FLOAT, 8 },
	{ "__bf16", VALUES_BFLOAT, 2 },
	{ "__nv_bfloat16", VALUES_BFLOAT, 2 },
	{ "__hip_bfloat16", VALUES_BFLOAT, 2 },
	{ "hip_bfloat16", VALUES_BFLOAT, 2 },
	{ "std::bfloat16_t", VALUES_BFLOAT, 2 },
	{ "char8_t", VALUES_UTF, 1 },
	{ "char16_t", VALUES_UTF, 2 },
	{ "char32_t", VALUES_UTF, 4 },
	{ "wchar_t", VALUES_SIGNED, 4 },
	{ "int8_t", VALUES_SIGNED_CHAR, 1 },
	{ "int16_t", VALUES_SIGNED, 2 },
	{ "int32_t", VALUES_SIGNED, 4 },
	{ "int64_t", VALUES_SIGNED, 8 },
	{ "uint8_t", VALUES_UNSIGNED_CHAR, 1 },
	{ "uint16_t", VALUES_UNSIGNED, 2 },
	{ "uint32_t", VALUES_UNSIGNED, 4 },
	{ "uint64_t", VALUES_UNSIGNED, 8 },
	{ "size_t", VALUES_UNSIGNED, 8 },
	{ "ssize_t", VALUES_SIGNED, 8 },
	{ "ptrdiff_t", VALUES_SIGNED, 8 },
	{ "intptr_t", VALUES_SIGNED, 8 },
	{ "uintptr_t", VALUES_UNSIGNED, 8 },
	{ "uchar", VALUES_UNSIGNED_CHAR, 1 },
	{ "ushort", VALUES_UNSIGNED, 2 },
	{ "uint", VALUES_UNSIGNED, 4 },
	{ "ulong", VALUES_UNSIGNED, 8 },
	{ "std::nullptr_t", VALUES_POINTER, 8 },
	{ "decltype(nullptr)", VALUES_POINTER, 8 },
};

/* How often each word occurs from which C builds its arithmetic types. */
enum word { WORD_SIGNED, WORD_UNSIGNED, WORD_CHAR, WORD_SHORT, WORD_INT, WORD_LONG, WORD_INT128, WORD_DOUBLE, N_WORDS };

static const char *const words[N_WORDS] = {
	[WORD_SIGNED] = "signed", [WORD_UNSIGNED] = "unsigned", [WORD_CHAR] = "char",
	[WORD_SHORT] = "short", [WORD_INT] = "int", [WORD_LONG] = "long", [WORD_INT128] = "__int128",
	[WORD_DOUBLE] = "double",
};

static const char *const qualifiers[] = { "const", "volatile", "restrict", "__restrict", "__restrict__" };

static bool is_word(const char *at, size_t size, const char *word)
{
	return strlen(word) == size && !memcmp(at, word, size);
}

static bool is_qualifier(const char *at, size_t size)
{
	for (size_t i = 0; i < sizeof(qualifiers) / sizeof(qualifiers[0]); i++)
		if (is_word(at, size, qualifiers[i]))
			return true;
	return false;
}

static const struct named *find_named(const char *at, size_t size)
{
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		if (is_word(at, size, named[i].name))
			return &named[i];
	return NULL;
}

/* Count a word; @return false when it is none of C's, or came too often. */
static bool count_word(const char *at, size_t size, uint8_t counts[N_WORDS])
{
	for (unsigned w = 0; w < N_WORDS; w++)
		if (is_word(at, size, words[w]))
			return ++counts[w] <= (w == WORD_LONG ? 2 : 1);
	return false;
}

/* @return the next word, passing over blanks; its size is 0 at the end. */
static const char *next_word(const char *at, size_t *ret_size)
{
	at += strspn(at, " ");
	*ret_size = strcspn(at, " *&");
	return at;
}

/* The arithmetic types of C, 6.7.2 of its standard: which words may be together, and what they mean. */
static int arithmetic(const uint8_t n[N_WORDS], struct values_scalar *ret)
{
	bool has_sign = n[WORD_SIGNED] + n[WORD_UNSIGNED] > 0;
	unsigned kinds = n[WORD_CHAR] + n[WORD_SHORT] + (n[WORD_LONG] > 0) + n[WORD_INT128];
	uint32_t size = 4;

	if (n[WORD_SIGNED] && n[WORD_UNSIGNED])
		return -ENOENT;
	if (n[WORD_DOUBLE]) { /* A long double of a kernel is a double. */
		if (has_sign || n[WORD_INT] || n[WORD_LONG] > 1 || kinds > n[WORD_LONG])
			return -ENOENT;
		*ret = (struct values_scalar){ VALUES_FLOAT, 8, NULL };
		return 0;
	}
	if (kinds > 1 || (n[WORD_INT] && (n[WORD_CHAR] || n[WORD_INT128])) ||
	    (!has_sign && !kinds && !n[WORD_INT]))
		return -ENOENT;
	if (n[WORD_CHAR]) {
		*ret = (struct values_scalar){ n[WORD_UNSIGNED] ? VALUES_UNSIGNED_CHAR : VALUES_SIGNED_CHAR,
					       1, NULL };
		return 0;
	}
	if (n[WORD_SHORT])
		size = 2;
	else if (n[WORD_LONG])
		size = 8;
	else if (n[WORD_INT128])
		size = 16;
	*ret = (struct values_scalar){ n[WORD_UNSIGNED] ? VALUES_UNSIGNED : VALUES_SIGNED, size, NULL };
	return 0;
}

static bool is_pointer(const char *name)
{
	size_t size = strlen(name);

	for (;;) {
		const char *last;

		while (size && name[size - 1] == ' ')
			size--;
		if (size && (name[size - 1] == '*' || name[size - 1] == '&'))
			return size > 1;
		for (last = name + size; last > name && (isalnum((unsigned char)last[-1]) || last[-1] == '_');)
			last--;
		if (!is_qualifier(last, (size_t)(name + size - last)))
			return false;
		size = (size_t)(last - name);
	}
}

int values_scalar_parse(const char *name, struct values_scalar *ret)
{
	uint8_t counts[N_WORDS] = { 0 };
	const struct named *alone = NULL;
	size_t n_words = 0, size;

	/* A pointer to a function has its star inside. */
	if (is_pointer(name) || strstr(name, "(*)")) {
		*ret = (struct values_scalar){ VALUES_POINTER, 8, NULL };
		return 0;
	}
	for (const char *at = next_word(name, &size); size; at = next_word(at + size, &size)) {
		if (is_qualifier(at, size))
			continue;
		if (n_words++ > 4 || alone)
			return -ENOENT;
		alone = find_named(at, size);
		if (alone ? n_words > 1 : !count_word(at, size, counts))
			return -ENOENT;
	}
	if (!alone)
		return n_words ? arithmetic(counts, ret) : -ENOENT;
	*ret = (struct values_scalar){ alone->encoding, alone->size, NULL };
	return 0;
}
