/** Tests that tus-js-client can upload a file despite lost connections and a killed server. */
import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Cut, CuttingProxy } from '../support/cutting-proxy.ts'
import { makeFolder, startServer } from '../support/process.ts'
import { createRandom } from '../support/random.ts'
import { createClientUpload } from '../support/tus-client.ts'
import { readArtifact, waitForState } from '../support/uploads.ts'

// New processes and large transfers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const MIB = 1024 ** 2
const SIZE = 128 * MIB
const INTERRUPTIONS = 20
/** The kinds of interruptions; the test repeats them in this order. */
const ways: readonly (Cut | 'abort')[] = ['reset', 'end', 'abort', 'end', 'reset']
/** Index of the interruption that kills the server. */
const KILL_AT = 11

/** Returns one random offset, in bytes, in each of several ranges of equal size. */
function choosePoints(seed: number): number[] {
  const random = createRandom(seed)
  const stretch = SIZE / (INTERRUPTIONS + 1)
  return Array.from({ length: INTERRUPTIONS }, (_, index) => Math.floor((index + random()) * stretch) + 1)
}

const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test('a 128 MiB upload arrives unchanged despite 20 interruptions', async () => {
  const folder = await makeFolder()
  const start = () => startServer({ folder, env: { PARLEY_DATA_DIR: join(folder, 'data') } })
  let server = await start()
  const key = server.key as string
  const bytes = randomBytes(SIZE)
  const { promise: finished, resolve, reject } = Promise.withResolvers<void>()

  const proxy = await CuttingProxy.open(server.url, {
    points: choosePoints(20_261_121),
    onPoint(index) {
      if (index === KILL_AT) {
        proxy.forwardTo(restart())
        return 'reset'
      }
      const way = ways[index % ways.length] as Cut | 'abort'
      if (way !== 'abort') return way
      resume().catch(reject)
      return 'go on'
    },
  })
  onTestFinished(() => proxy.close())

  async function restart(): Promise<string> {
    server.kill('SIGKILL')
    await server.ended
    server = await start()
    return server.url
  }

  let current = createClientUpload(bytes, { url: proxy.url, key })
  const run = () => {
    current.done.then(resolve, reject)
    current.upload.start()
  }
  /** Resumes with only the upload URL, as a page does after a reload. */
  async function resume(): Promise<void> {
    await current.upload.abort()
    current = createClientUpload(bytes, { url: proxy.url, key }, { uploadUrl: current.upload.url as string })
    run()
  }
  let id = ''
  current.upload.options.onAfterResponse = (_request, response) => {
    id ||= response.getHeader('X-Artifact-Id') ?? ''
  }
  run()
  await finished

  expect(proxy.passedPoints).toBe(INTERRUPTIONS)
  const target = { url: server.url, key, fetch }
  await waitForState(target, id, 'ready')
  const received = await readArtifact(target, id)
  expect(digestOf(received)).toBe(digestOf(bytes))
  expect(received.equals(bytes)).toBe(true)
})
