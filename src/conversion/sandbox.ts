/** Runs programs that read what strangers uploaded: confined, in a process group of their own, and killed with all of it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname } from 'node:path'
import type { Programs } from './programs.ts'

/** A program, and what it needs to start at all. */
export interface Tool {
  /** An absolute path. */
  readonly program: string
  readonly reads: readonly string[]
  /** With these args it ends well at once. */
  readonly check: readonly string[]
  /** Addresses it reserves before it uses any. */
  readonly reservedBytes: number
}

/** One run of a tool. */
export interface SandboxedRun {
  readonly args: readonly string[]
  readonly source: string
  /** The one folder it may write in. */
  readonly folder: string
  /** Of each file it writes. */
  readonly outputBytes: number
  /** Aborted: every process of the run is killed. */
  readonly signal: AbortSignal
  /** Takes long, and so gives way to everything else that wants the processor. */
  readonly isLowPriority?: boolean
  /** Called with each line of its standard output. */
  readonly onLine?: (line: string) => void
}

/** How a run ended, and the ends of what it printed. */
export interface SandboxedResult {
  readonly code: number | null
  readonly killedBy: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** What every run may take. */
export interface RunLimits {
  readonly wallMs: number
  readonly memoryBytes: number
}

/** Runs tools within limits. */
export interface Sandbox {
  /**
   * Resolves when the processes of the run are gone, however they ended.
   * @throws the signal's reason when it aborts, and what the system says when the tool cannot be started.
   */
  run(tool: Tool, run: SandboxedRun): Promise<SandboxedResult>
  /** Whether a tool runs in namespaces of its own here: bubblewrap is there and the machine permits it. */
  isIsolated(tool: Tool): Promise<boolean>
}

/** Long, because a check that fails is not repeated. */
const CHECK_MS = 60_000
/** Enough for anything a check writes. */
const CHECK_BYTES = 1024 ** 2
/** A program may keep so many processors busy all the time. */
const BUSY_THREADS = 4

/** A sandbox for the programs of this machine. */
export function createSandbox(programs: Programs, { wallMs, memoryBytes }: RunLimits): Sandbox {
  const checks = new Map<string, Promise<boolean>>()
  const cpuSeconds = Math.ceil((wallMs * BUSY_THREADS) / 1000)
  const toCommand = ({ program, reads, reservedBytes }: Tool): Omit<ConfinedCommand, 'args'> => ({
    program,
    reads,
    folder: undefined,
    memoryBytes: reservedBytes + memoryBytes,
    cpuSeconds,
    outputBytes: CHECK_BYTES,
    isLowPriority: false,
  })

  async function check(tool: Tool): Promise<boolean> {
    if (programs.bwrap === undefined) return false
    const args = toConfinedCommand(programs, { ...toCommand(tool), args: tool.check }, true)
    const end = await runToEnd(args, { signal: AbortSignal.timeout(CHECK_MS) }).catch(() => undefined)
    return end?.code === 0
  }

  function isIsolated(tool: Tool): Promise<boolean> {
    let checked = checks.get(tool.program)
    if (checked === undefined) {
      checked = check(tool)
      checks.set(tool.program, checked)
    }
    return checked
  }

  return {
    async run(tool, run) {
      const { args, folder, outputBytes, isLowPriority = false } = run
      const reads = [...tool.reads, run.source]
      const command = { ...toCommand(tool), args, reads, folder, outputBytes, isLowPriority }
      return runToEnd(toConfinedCommand(programs, command, await isIsolated(tool)), run)
    },
    isIsolated,
  }
}

/** How much is kept of what a run prints. */
const STDOUT_CHARACTERS = 1024 ** 2
const STDERR_CHARACTERS = 4_096
const LINE_CHARACTERS = 4_096

async function runToEnd(
  [program = '', ...args]: readonly string[],
  { signal, onLine = () => {} }: Pick<SandboxedRun, 'signal' | 'onLine'>,
): Promise<SandboxedResult> {
  signal.throwIfAborted()
  // No shell, nothing of our environment, and a group of its own, so that all of it can be killed at once.
  const child = spawn(program, args, {
    cwd: '/',
    env: { LC_ALL: 'C' },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed = collect(child, onLine)
  const kill = () => killGroup(child)
  signal.addEventListener('abort', kill, { once: true })
  try {
    const [code, killedBy] = await once(child, 'close')
    signal.throwIfAborted()
    return { code, killedBy, ...printed() }
  } finally {
    signal.removeEventListener('abort', kill)
  }
}

function collect(child: ChildProcess, onLine: (line: string) => void) {
  const printed = { stdout: '', stderr: '' }
  let line = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    printed.stdout = (printed.stdout + text).slice(0, STDOUT_CHARACTERS)
    const lines = (line + text).split('\n')
    line = (lines.pop() ?? '').slice(0, LINE_CHARACTERS)
    for (const one of lines) onLine(one)
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    printed.stderr = (printed.stderr + text).slice(-STDERR_CHARACTERS)
  })
  return () => printed
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // A system without process groups.
    child.kill('SIGKILL')
  }
}

/** A command and what it is allowed. */
export interface ConfinedCommand {
  /** An absolute path. */
  readonly program: string
  readonly args: readonly string[]
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
  readonly isLowPriority: boolean
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
    ...before(command.isLowPriority ? programs.nice : undefined, () => ['-n', '10']),
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
    ...command.args,
  ]
}

function before(program: string | undefined, toArguments: () => string[]): string[] {
  return program === undefined ? [] : [program, ...toArguments()]
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
