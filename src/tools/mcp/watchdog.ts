/** Ends the programs we started when we come to an end without a chance to do it ourselves. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

/**
 * Reads `+ GROUP` and `- GROUP` until its input ends, which is when we are gone, however we went; then it ends the groups that are
 * left. Many MCP servers do not notice that nobody speaks to them any more.
 */
const SCRIPT = `
groups=
while read -r sign group; do
  kept=
  for each in $groups; do [ "$each" = "$group" ] || kept="$kept $each"; done
  groups=$kept
  [ "$sign" = - ] || groups="$groups $group"
done
for each in $groups; do kill -s KILL -- "-$each"; done
`

/** A process of its own, there from the first program on. */
export class Watchdog {
  private child: ChildProcessByStdio<Writable, null, null> | undefined

  /** Ends the process group with us. */
  watch(group: number): void {
    this.child ??= startWatching()
    this.tell(`+ ${group}`)
  }

  /** The process group has ended. */
  forget(group: number): void {
    this.tell(`- ${group}`)
  }

  close(): void {
    this.child?.stdin.end()
  }

  private tell(line: string): void {
    if (this.child?.stdin.writable) this.child.stdin.write(`${line}\n`)
  }
}

/** In a session of its own: what is sent to us from a terminal must not end it first. */
function startWatching(): ChildProcessByStdio<Writable, null, null> {
  const child = spawn('/bin/sh', ['-c', SCRIPT], {
    cwd: '/',
    env: {},
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // Without it the programs still end with us wherever we are told to stop.
  child.on('error', () => {})
  child.stdin.on('error', () => {})
  child.unref()
  return child
}
