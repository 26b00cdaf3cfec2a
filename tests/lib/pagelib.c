/* SPDX-License-Identifier: MIT */
#include "pagelib.h"

#include <unistd.h>

long page_of_test;

long __real_sysconf(int name);
long __wrap_sysconf(int name);

long __wrap_sysconf(int name)
{
	return name == _SC_PAGESIZE && page_of_test ? page_of_test : __real_sysconf(name);
}
