/** Wraps a command so that what it runs has no network, sees few files and takes only so much of the machine. Security: 2.9. */
import { dirname } from 'node:path'
import type { Programs } from './programs.ts'

/** A command and what it is allowed. */
export interface ConfinedCommand {
  /** An absolute path. */
  readonly program: string
  readonly words: readonly string[]
  /** Files and folders it may read, beside the system's own programs. */
  readonly reads: readonly string[]
  /** The one folder it may write in. */
  readonly folder: string | undefined
  /** Of addresses, not of pages: what a process merely reserves counts. */
  readonly memoryBytes: number
  readonly cpuSeconds: number
  /** Of each file it writes. */
  readonly outputBytes: number
  /** Gives way to everything else that wants the processor. */
  readonly isPatient: boolean
}

/** Where programs and their libraries lie; no data does. */
const systemFolders = [
  '/usr',
  '/bin',
  '/lib',
  '/lib32',
  '/lib64',
  '/opt',
  '/nix/store',
  '/etc/alternatives',
  '/etc/ld.so.cache',
]

/**
 * The command line that runs a command within its limits, as far as this machine has the programs for it. With `isIsolated`
 * it runs in namespaces of its own as well, which not every machine permits: without network, and without the rest of the disk.
 */
export function toConfinedCommand(
  programs: Programs,
  command: ConfinedCommand,
  isIsolated: boolean,
): string[] {
  return [
    ...before(command.isPatient ? programs.nice : undefined, () => ['-n', '10']),
    // Bubblewrap does both of itself.
    ...before(isIsolated ? undefined : programs.setpriv, () => [
      '--pdeathsig',
      'KILL',
      '--no-new-privs',
      '--',
    ]),
    ...before(programs.prlimit, () => toLimits(command)),
    ...before(isIsolated ? programs.bwrap : undefined, () => toNamespaces(command)),
    command.program,
    ...command.words,
  ]
}

function before(program: string | undefined, toWords: () => string[]): string[] {
  return program === undefined ? [] : [program, ...toWords()]
}

function toLimits({ memoryBytes, cpuSeconds, outputBytes }: ConfinedCommand): string[] {
  return [
    `--as=${memoryBytes}`,
    `--cpu=${cpuSeconds}`,
    `--fsize=${outputBytes}`,
    // The memory of a crashed process is not for the disk.
    '--core=0',
    '--',
  ]
}

function toNamespaces({ program, reads, folder }: ConfinedCommand): string[] {
  const readable = [...systemFolders, dirname(program), ...reads]
  return [
    '--unshare-all',
    '--die-with-parent',
    ...['--cap-drop', 'ALL'],
    ...readable.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--dev', '/dev'],
    ...(folder === undefined ? [] : ['--bind', folder, folder]),
    '--',
  ]
}
