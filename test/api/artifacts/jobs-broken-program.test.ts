/**
 * Tests that a conversion whose program exits early or whose pipes break does not affect the server or other
 * conversions.
 */
import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startJobs } from '../../support/jobs.ts'
import { readArtifact, uploadWhole } from '../../support/uploads.ts'

// Conversions may take longer than the default timeout on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const CAPTIONS = Buffer.from('1\n00:00:01,000 --> 00:00:02,000\nHello\n')
const metadata = { kind: 'captions', filename: 'a.srt' }

/**
 * Calls `change` on the next child process when Node has started it; returns a function that counts these
 * processes.
 */
function changeNextProcess(change: (child: ChildProcess) => void): () => number {
  let changed = 0
  const onChild = (message: unknown) => {
    if (changed > 0) return
    changed += 1
    const { process: child } = message as { process: ChildProcess }
    // The server adds its listeners in the same tick.
    setImmediate(() => change(child))
  }
  subscribe('child_process', onChild)
  onTestFinished(() => void unsubscribe('child_process', onChild))
  return () => changed
}

const pipeError = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })

test.each<[string, (child: ChildProcess) => void, boolean]>([
  ['is killed before it reads the file', (child) => child.kill('SIGKILL'), false],
  ['cannot write its output', (child) => child.stdout?.destroy(pipeError), false],
  ['closes its error output with an error', (child) => child.stderr?.destroy(pipeError), true],
])(
  'a conversion whose program %s does not affect the server or other conversions',
  async (_what, change, isConverted) => {
    const { app } = await startJobs()
    // Makes the server check its sandbox first, so that the next child process is the conversion's.
    await uploadWhole(app, CAPTIONS, { metadata })
    const countChanged = changeNextProcess(change)
    const isVtt = async () => {
      const { id } = await uploadWhole(app, CAPTIONS, { metadata })
      return (await readArtifact(app, id)).toString().startsWith('WEBVTT')
    }
    // An upload that cannot be converted is served unchanged.
    expect([await isVtt(), countChanged()]).toEqual([isConverted, 1])
    expect(await isVtt()).toBe(true)
  },
)
