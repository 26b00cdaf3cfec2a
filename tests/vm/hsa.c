/* SPDX-License-Identifier: MIT */
/*
 * A real ROCm process: starts and stops AMD's runtime library when told to.
 *
 * The same conversation as tests/vm/target.c, with the words init, down, pid and exit; RESULT is
 * the library's status.  Built against nothing of AMD's: two functions without arguments.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	void *library = dlopen("libhsa-runtime64.so.1", RTLD_NOW);
	char line[64];
	int (*init)(void), (*down)(void);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&init = dlsym(library, "hsa_init");
	*(void **)&down = dlsym(library, "hsa_shut_down");
	if (!init || !down)
		return 1;
	printf("ready %llx\n", (unsigned long long)(unsigned long)dlsym(library, "_amdgpu_r_debug"));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int r = -1;

		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "init"))
			r = init();
		else if (!strcmp(line, "down"))
			r = down();
		else if (!strcmp(line, "pid"))
			r = getpid();
		else if (!strcmp(line, "exit"))
			return 0;
		printf("%s %d\n", line, r);
		fflush(stdout);
	}
	return 0;
}
