/** Tests that two processes on one database never take the same job. */
import { expect, test } from 'vitest'
import { insertJob, takeJob } from '../../src/artifacts/jobs/store.ts'
import { insertArtifact } from '../../src/artifacts/store.ts'
import type { Database } from '../../src/db/database.ts'
import { opened, parentKey } from '../support/database.ts'
import { OtherProcess, source } from '../support/other-process.ts'
import { makeFolder } from '../support/process.ts'

const owner = 'a'.repeat(12)

async function insertUploads(db: Database, ...blobs: string[]): Promise<void> {
  await db.insertInto('parent_keys').values(parentKey(owner)).execute()
  for (const blob of blobs)
    await insertArtifact(db, { id: blob, parent_key_id: owner, state: 'processing', created_at: 1, blob })
}

async function openWith(blobs: readonly string[], dataDir = ':memory:') {
  const { db } = await opened('server', dataDir)
  await insertUploads(db, ...blobs)
  for (const [index, blob] of blobs.entries()) await insertJob(db, 'convert', blob, 100 + index)
  const take = (now: number, running: string[] = []) =>
    takeJob(db, 'convert', { now, until: now + 30, running })
  return { db, take }
}

test('two processes on one database take every job exactly once', async () => {
  const dataDir = `${await makeFolder()}/data`
  const blobs = Array.from({ length: 60 }, (_, index) => `blob-${index}`)
  const { db } = await openWith(blobs, dataDir)
  const script = `
    import { openDatabase } from ${source('db/open.ts')}
    import { takeJob } from ${source('artifacts/jobs/store.ts')}
    const { db } = await openDatabase({ dataDir: ${JSON.stringify(dataDir)}, role: 'command' })
    console.log('open')
    process.stdin.once('data', async () => {
      const taken = []
      for (let job; (job = await takeJob(db, 'convert', { now: 500, until: 530, running: [] })); )
        taken.push(job.blob)
      console.log(JSON.stringify(taken))
    })`
  const others = [new OtherProcess(script), new OtherProcess(script)]
  for (const other of others) expect(await other.hears()).toBe('open')
  for (const other of others) other.say('go')
  const taken = await Promise.all(others.map(async (other) => JSON.parse(await other.hears())))
  expect(taken.flat().sort()).toEqual(blobs.toSorted())
  const rows = await db.selectFrom('jobs').select(['fence', 'is_taken']).execute()
  expect(rows).toEqual(blobs.map(() => ({ fence: 1, is_taken: 1 })))
})
