/** Tests that two processes on one database never take the same job. */
import { expect, test } from 'vitest'
import { openWithJobs } from '../support/job-rows.ts'
import { OtherProcess, source } from '../support/other-process.ts'
import { makeFolder } from '../support/process.ts'

test('two processes that share a database take each job exactly once', async () => {
  const dataDir = `${await makeFolder()}/data`
  const blobs = Array.from({ length: 60 }, (_, index) => `blob-${index}`)
  const { db } = await openWithJobs(blobs, dataDir)
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
