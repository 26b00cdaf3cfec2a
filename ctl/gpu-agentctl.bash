# bash completion for gpu-agentctl                        -*- shell-script -*-
# SPDX-License-Identifier: MIT

_gpu_agentctl_verbs='list doctor snapshot analyze diff merge watch devices queues attach detach suspend resume watchpoint waves registers memory disassemble dump cores hooks events rpc dap status help version'
_gpu_agentctl_options='--json --output --socket --timeout --max-stop --color --no-pager --no-legend --quiet --verbose --help --version'

# Options of a verb; ctl/check-verbs compares them with --help.
_gpu_agentctl_verb_options() {
	case $1 in
	snapshot) echo '--waves --registers --queues-only --record --again --any-progress --core' ;;
	analyze) echo '--waves --registers --extract-code' ;;
	diff) echo '--any-progress' ;;
	watch) echo '--interval --count' ;;
	devices) echo '--core' ;;
	queues) echo '--gpu --core' ;;
	attach) echo '--control --take --force --hand-over --for --until-eof' ;;
	suspend) echo '--queues --lease --grace --hold --until-eof' ;;
	resume) echo '--queues --force' ;;
	watchpoint) echo '--mode --gpu --id --for --until-eof' ;;
	waves) echo '--queue --group --state --limit --core' ;;
	registers) echo '--bank --range --lanes --core' ;;
	memory) echo '--raw --space --wave --lane --bank --core' ;;
	cores) echo '--since --until --field --reverse --last --number' ;;
	hooks) echo '--user' ;;
	dump) echo '--light --full --unified --estimate --compress --layout --progress' ;;
	disassemble) echo '--wave --gpu --count --before --start --core' ;;
	events) echo '--subscribe --hold --filter --no-look --for --until-eof' ;;
	rpc) echo '--pid --control' ;;
	esac
}

# Only processes that the agent names: an agent that is not there completes to nothing.
_gpu_agentctl_pids() {
	"${COMP_WORDS[0]}" list --no-legend --quiet --color=never --timeout=2s ${socket:+--socket="$socket"} 2>/dev/null |
		while read -r pid _; do echo "$pid"; done
}

_gpu_agentctl_values() {
	case $1 in
	--json) echo 'pretty short off' ;;
	--color) echo 'auto always never' ;;
	--since | --until) echo 'yesterday today -1h -1d' ;;
	--field) echo 'PID UID COMM EXE KERNEL REASON RULE EXCEPTION VENDOR LOCATION KEY BOOT_ID RECORD' ;;
	--space) echo 'global lds scratch generic param constant code' ;;
	--bank) echo 'special scalar vector accumulator trap' ;;
	--compress) echo 'zstd' ;;
	--layout) echo 'r346 r400 r525 r550 r555 r565 r570 r575 r580 r590 r615' ;;
	--state) echo 'running halted stopped memory_violation address_error illegal_instruction math_error assert' ;;
	--mode) echo 'read nonread atomic all' ;;
	--again | --interval) echo '500 2000 10000' ;;
	--timeout | --max-stop | --lease | --for) echo '500ms 1s 5s 30s' ;;
	--subscribe) echo 'faults all none' ;;
	--pid) _gpu_agentctl_pids ;;
	esac
}

_gpu_agentctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev= verb= socket= word i n=0
	COMPREPLY=()

	# "=" may or may not be a word of its own.
	[ "$COMP_CWORD" -gt 0 ] && prev=${COMP_WORDS[COMP_CWORD - 1]}
	if [ "$cur" = = ]; then
		cur=
	elif [ "$prev" = = ]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $cur == --*=* ]]; then
		prev=${cur%%=*}
		COMPREPLY=($(compgen -P "$prev=" -W "$(_gpu_agentctl_values "$prev")" -- "${cur#*=}"))
		return
	fi

	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--socket) socket=${COMP_WORDS[i + 1]} && [ "$socket" = = ] && socket=${COMP_WORDS[i + 2]} ;;
		-* | =) ;;
		*)
			case ${COMP_WORDS[i - 1]} in
			-o | --output | --socket | --timeout | --max-stop | --color | --core | =) continue ;;
			esac
			if [ -z "$verb" ]; then verb=$word; else n=$((n + 1)); fi
			;;
		esac
	done

	case $prev in
	-o | --output | --socket | --core)
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$cur"))
		return
		;;
	--color | --since | --until | --field | --mode | --space | --bank | --state | --timeout | --max-stop | --lease | --for | --subscribe | --pid | --again | --interval)
		COMPREPLY=($(compgen -W "$(_gpu_agentctl_values "$prev")" -- "$cur"))
		return
		;;
	--gpu | --id | --queues | --grace | --count | --queue | --group | --limit | --range | --lanes | --wave | --lane | --before | --start | --number | --extract-code) return ;;
	esac
	if [ "$prev" = --user ]; then
		COMPREPLY=($(compgen -u -- "$cur"))
		return
	fi
	if [ "$prev" = --json ] && [ "${COMP_WORDS[COMP_CWORD - 1]}" = = -o "${COMP_WORDS[COMP_CWORD]}" = = ]; then
		COMPREPLY=($(compgen -W "$(_gpu_agentctl_values --json)" -- "$cur"))
		return
	fi

	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$_gpu_agentctl_options $(_gpu_agentctl_verb_options "$verb")" -- "$cur"))
	elif [ -z "$verb" ]; then
		COMPREPLY=($(compgen -W "$_gpu_agentctl_verbs" -- "$cur"))
	elif [ "$verb" = analyze ] || [ "$verb" = diff ] || [ "$verb" = merge ]; then
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$cur"))
	elif [ "$verb" = cores ] && [ $n -eq 0 ]; then
		COMPREPLY=($(compgen -W 'list info export pin unpin rm du' -- "$cur"))
	elif [ "$verb" = hooks ] && [ $n -eq 0 ]; then
		COMPREPLY=($(compgen -W 'list test' -- "$cur"))
	elif [ "$verb" = watchpoint ] && [ $n -eq 1 ]; then
		COMPREPLY=($(compgen -W 'set list clear' -- "$cur"))
	elif [ $n -eq 0 ]; then
		case $verb in
		doctor | snapshot | watch | devices | queues | attach | detach | suspend | resume | watchpoint | waves | registers | memory | disassemble | dump | events)
			COMPREPLY=($(compgen -W "$(_gpu_agentctl_pids)" -- "$cur"))
			;;
		rpc)
			COMPREPLY=($(compgen -W 'agent.hello agent.status rpc.discover process.list process.doctor
				session.attach session.control session.detach session.list runtime.info gpu.devices gpu.queues gpu.snapshot
				gpu.suspend gpu.renew gpu.resume watchpoint.set watchpoint.clear watchpoint.list launch.override
				launch.mode gpu.flags exception.subscribe exception.query exception.info exception.filter exception.forward
				wave.registers code.list code.locate code.read memory.read core.begin core.read core.write core.end
				cores.list cores.info cores.read cores.pin cores.remove cores.usage hooks.list hooks.test' -- "$cur"))
			;;
		esac
	fi
}

complete -F _gpu_agentctl gpu-agentctl
