/** Tests that an in-process model does not leak memory. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { localEnvironment, writeModelFile } from '../support/local-model.ts'
import { source } from '../support/other-process.ts'
import { makeFolder, runParley } from '../support/process.ts'

// Models are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000 })

const path = writeModelFile()

/** A script that makes requests and prints the used memory, in MiB, after 300 and after 400 rounds. */
const script = `
  import { setFlagsFromString } from 'node:v8'
  import { runInNewContext } from 'node:vm'
  import { parseConfig } from ${source('config/parse.ts')}
  import { createService } from ${source('server/service.ts')}
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  const { config } = await parseConfig(${JSON.stringify({
    ...localEnvironment(path),
    PARLEY_DATA_DIR: ':memory:',
    PORT: '0',
    LOG_LEVEL: 'silent',
    PARLEY_RATE_LIMIT_PARENT: '0',
  })})
  const service = await createService({ config })
  const call = async (path, body, signal) => {
    const response = await fetch(service.url + path, {
      method: 'POST',
      headers: { Authorization: 'Bearer ' + service.firstParentKey, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    })
    if (response.status !== 200) throw new Error(await response.text())
    return response
  }
  const round = async (seed) => {
    const chat = { messages: [{ role: 'user', content: 'Question ' + seed }], max_tokens: 10, seed }
    await (await call('/v1/chat/completions', { ...chat, stream: seed % 2 === 0 })).text()
    await (await call('/v1/embeddings', { input: 'Text ' + seed })).text()
    const leaving = new AbortController()
    const left = await call('/v1/chat/completions', { ...chat, max_tokens: 60, stream: true }, leaving.signal)
    leaving.abort()
    await left.text().catch(() => {})
  }
  const measure = async () => {
    // Waits until cancelled responses have stopped and their usage is recorded.
    await new Promise((resolve) => setTimeout(resolve, 1000))
    collect()
    const { rss, heapUsed, external } = process.memoryUsage()
    return [rss, heapUsed, external].map((bytes) => bytes / 2 ** 20)
  }
  // The first rounds grow the heap and the allocator's arenas to their working size.
  for (let seed = 0; seed < 300; seed++) await round(seed)
  const before = await measure()
  for (let seed = 0; seed < 100; seed++) await round(seed)
  const after = await measure()
  console.log(JSON.stringify({ before, after }))
  await service.close()
`

test('responses, embeddings and disconnects do not leak memory', async () => {
  const folder = await makeFolder()
  const main = join(folder, 'measure.mjs')
  await writeFile(main, script)
  const { stdout, stderr } = await runParley([], { folder, main })
  expect(stderr).toBe('')
  const { before, after } = JSON.parse(stdout)
  const [rss, heap, external] = after.map((mebibytes: number, index: number) => mebibytes - before[index])
  // Creating a new llama.cpp context for each response would leak more than 200 MiB.
  expect(rss).toBeLessThan(24)
  expect(heap).toBeLessThan(3)
  expect(external).toBeLessThan(3)
})
