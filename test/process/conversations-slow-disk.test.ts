/** Tests that a slow disk does not block the event loop while turns are stored; needs a C compiler. */
import { execFile, spawnSync } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { makeFolder, repository, startServer } from '../support/process.ts'
import { shareUpstream } from '../support/start-upstream.ts'
import {
  chatApi,
  chunksText,
  completeEvents,
  createStoringAgent,
  readStream,
  storingEnv,
  summarize,
} from '../support/stored-turns.ts'

vi.setConfig({ testTimeout: 120_000 })

const hasCompiler = spawnSync('cc', ['--version']).status === 0
const upstream = await shareUpstream()

test.runIf(hasCompiler)(
  'the main thread does not sync any conversation file while 20 turns are stored',
  async () => {
    const folder = await makeFolder()
    const library = join(folder, 'slow-sync.so')
    const source = join(repository, 'test/support/slow-sync.c')
    await promisify(execFile)('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl'])
    const log = join(folder, 'syncs')
    const env = { ...storingEnv(upstream), LD_PRELOAD: library, SYNC_LOG: log }
    const server = await startServer({ folder, env })
    const { key } = await createStoringAgent(server.url, server.key as string)
    const read = (text: string) =>
      readStream(server.url, { path: chatApi.path, key, body: chatApi.body(text) })
    // The first turn creates the file.
    await read('hello')
    await rm(log)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => read(`{{up:chunks 100}}{{up:delay 10}} ${index}`)),
    )
    for (const { text } of answers)
      expect(summarize(chatApi, completeEvents(text)).length).toBe(chunksText(100).length)
    const syncs = (await readFile(log, 'utf8')).trim().split('\n')
    expect(new Set(syncs)).toEqual(new Set(['other']))
  },
)
