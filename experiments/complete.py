"""The verb `completion`: the script that a shell reads, and the answers it asks for."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .completion import SHELLS, complete
from .errors import EXIT_OK, UsageError, hint

# A shell hands over the line up to the cursor, and gets back one possible end of its last word a
# line. Bash breaks words at `=` and `:`; what stands before the last break is not said again.
SCRIPTS = {
    "bash": """\
_sojourn_completion() {
    local line="${COMP_LINE:0:COMP_POINT}" IFS=$'\\n'
    local word="${line##*[[:space:]]}"
    local said="${word%"${word##*[=:]}"}"
    COMPREPLY=($(command sojourn completion answer "$line" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$said"}")
}
complete -o nospace -F _sojourn_completion sojourn
""",
    "zsh": """\
#compdef sojourn
_sojourn_completion() {
    local -a found
    found=("${(@f)$(command sojourn completion answer "${BUFFER[1,CURSOR]}" 2>/dev/null)}")
    compadd -Q -S '' -- $found
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _sojourn_completion sojourn
""",
    "fish": """\
function _sojourn_completion
    command sojourn completion answer (commandline --cut-at-cursor | string collect) 2>/dev/null |
        string trim --right
end
complete --command sojourn --no-files --arguments '(_sojourn_completion)'
""",
}
ANSWER = "answer"


def completion(words: Sequence[str]) -> int:
    """Run `sojourn completion bash|zsh|fish`; `answer LINE` is what the scripts call."""
    from .command import VERBS  # the table of verbs imports this module when it is used

    if len(words) == 2 and words[0] == ANSWER:
        found = complete(words[1].split(" ")[1:] or [""], VERBS)
        sys.stdout.write("".join(f"{end}\n" for end in found))
        return EXIT_OK
    if len(words) != 1 or words[0] not in SHELLS:
        said = words[0] if words else ""
        asked = f"completion {said}".rstrip()
        raise UsageError(f"{asked}: expected a shell; {hint(said, SHELLS)}")
    sys.stdout.write(SCRIPTS[words[0]])
    return EXIT_OK
