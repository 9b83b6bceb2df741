/** Other processes that run a script of a test's own, above all one that opens the same data directory. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'

/** Another process running a script; `say` sends it a line, `hears` waits for its next one. It ends with the test. */
export class OtherProcess {
  readonly child: ChildProcess
  private readonly lines: AsyncIterator<string>

  constructor(script: string, wrapper: readonly string[] = []) {
    const command = [...wrapper, process.execPath, '--input-type=module', '-e', script]
    this.child = spawn(command[0] ?? '', command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] })
    if (this.child.stdout === null) throw new Error('a pipe was asked for')
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

/** A file of our source, as a script imports it. */
export const source = (path: string) => JSON.stringify(join(import.meta.dirname, '../../src', path))

/** Opens the directory in another process, which prints `open` or the refusal, and then holds it. */
export const openScript = (role: 'server' | 'command', dataDir: string) => `
  import { openDatabase } from ${source('db/open.ts')}
  const { db } = await openDatabase({ dataDir: ${JSON.stringify(dataDir)}, role: '${role}' }).catch((error) => {
    console.log(error.name + ': ' + error.message)
    process.exit()
  })
  console.log('open')
  setInterval(() => {}, 1000)
`
