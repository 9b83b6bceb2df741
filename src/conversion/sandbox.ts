/** Runs programs on untrusted files with resource limits and, where possible, without network access. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname } from 'node:path'
import type { Programs } from './programs.ts'

export interface Tool {
  readonly program: string
  /** Readable files and folders in addition to the system's programs. */
  readonly reads: readonly string[]
  /** Arguments that make the tool exit immediately with code 0. */
  readonly check: readonly string[]
  /** Address space that the tool reserves but does not use, in bytes. */
  readonly reservedBytes: number
}

export interface SandboxedRun {
  readonly args: readonly string[]
  readonly source: string
  readonly folder: string
  readonly outputBytes: number
  readonly signal: AbortSignal
  readonly isLowPriority?: boolean
  readonly onLine?: (line: string) => void
}

export interface SandboxedResult {
  readonly code: number | null
  readonly killedBy: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export type Sandbox = ReturnType<typeof createSandbox>

/** The timeout for checking whether a tool runs is long, because a wrong result would remain cached. */
const CHECK_MS = 60_000
const CHECK_BYTES = 1024 ** 2
/** Number of cores that a program can keep busy until its timeout without exceeding its CPU time limit. */
const BUSY_THREADS = 4

export function createSandbox(
  programs: Programs,
  { wallMs, memoryBytes }: { readonly wallMs: number; readonly memoryBytes: number },
) {
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

  /**
   * Returns whether the tool can run in its own namespaces. This requires bubblewrap and a system that
   * permits namespaces.
   */
  function isIsolated(tool: Tool): Promise<boolean> {
    let checked = checks.get(tool.program)
    if (checked === undefined) {
      checked = check(tool)
      checks.set(tool.program, checked)
    }
    return checked
  }

  return {
    /**
     * Runs a tool and resolves when all its processes have exited.
     * @throws the signal's reason, or the system's error if the tool cannot be started.
     */
    async run(tool: Tool, run: SandboxedRun): Promise<SandboxedResult> {
      const { args, folder, outputBytes, isLowPriority = false } = run
      const reads = [...tool.reads, run.source]
      const command = { ...toCommand(tool), args, reads, folder, outputBytes, isLowPriority }
      return runToEnd(toConfinedCommand(programs, command, await isIsolated(tool)), run)
    },
    isIsolated,
  }
}

const STDOUT_CHARACTERS = 1024 ** 2
const STDERR_CHARACTERS = 4_096
const LINE_CHARACTERS = 4_096

async function runToEnd(
  [program = '', ...args]: readonly string[],
  { signal, onLine = () => {} }: Pick<SandboxedRun, 'signal' | 'onLine'>,
): Promise<SandboxedResult> {
  signal.throwIfAborted()
  // Uses a separate process group, so that all processes can be killed together.
  const child = spawn(program, args, {
    cwd: '/',
    env: { LC_ALL: 'C' },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // Without listeners, an error after the program has ended would stop the server.
  for (const source of [child, child.stdout, child.stderr]) source.on('error', () => {})
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
    // Fallback for systems without process groups.
    child.kill('SIGKILL')
  }
}

interface ConfinedCommand
  extends Pick<Tool, 'program' | 'reads'>,
    Pick<SandboxedRun, 'args' | 'outputBytes'> {
  readonly folder: string | undefined
  /** Limit on the address space, which includes reserved memory. */
  readonly memoryBytes: number
  readonly cpuSeconds: number
  readonly isLowPriority: boolean
}

/** Folders with programs and libraries; none of them contains user data. */
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
 * Builds the command line from the programs that are installed. `isIsolated` adds namespaces that hide the
 * network and the rest of the disk.
 */
function toConfinedCommand(programs: Programs, command: ConfinedCommand, isIsolated: boolean): string[] {
  return [
    ...before(command.isLowPriority ? programs.nice : undefined, () => ['-n', '10']),
    // Bubblewrap sets both options itself.
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
    // A core dump could fill the disk.
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
