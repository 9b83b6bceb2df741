/** Runs scripts in separate processes and communicates with them line by line. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'

/** A running script. `say` sends a line to it, and `hears` returns its next line. */
export class OtherProcess {
  readonly child: ChildProcess
  private readonly lines: AsyncIterator<string>

  constructor(script: string, wrapper: readonly string[] = []) {
    const command = [...wrapper, process.execPath, '--input-type=module', '-e', script]
    this.child = spawn(command[0] ?? '', command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] })
    if (this.child.stdout === null) throw new Error('the process has no standard output')
    this.lines = createInterface(this.child.stdout)[Symbol.asyncIterator]()
    onTestFinished(() => this.kill())
  }

  async hears(): Promise<string> {
    return (await this.lines.next()).value ?? 'nothing'
  }

  say(line: string): void {
    this.child.stdin?.write(`${line}\n`)
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    this.child.kill('SIGKILL')
    await once(this.child, 'exit')
  }
}

/** Returns the quoted import specifier of a file in `src/`. */
export const source = (path: string) => JSON.stringify(join(import.meta.dirname, '../../src', path))

/** A script that opens the data directory, prints `open` or the error, and does not exit. */
export const openScript = (role: 'server' | 'command', dataDir: string) => `
  import { openDatabase } from ${source('db/open.ts')}
  const { db } = await openDatabase({ dataDir: ${JSON.stringify(dataDir)}, role: '${role}' }).catch((error) => {
    console.log(error.name + ': ' + error.message)
    process.exit()
  })
  console.log('open')
  setInterval(() => {}, 1000)
`
