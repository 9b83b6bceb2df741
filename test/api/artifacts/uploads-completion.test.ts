/** Tests that a writer cannot complete an upload after it has lost the lease. */
import { expect, test } from 'vitest'
import { acquireLease, findUploadRow } from '../../../src/artifacts/store.ts'
import { completeUpload } from '../../../src/artifacts/transfer/complete.ts'
import { startApp } from '../../support/app.ts'
import { createUpload, readArtifact, waitForState } from '../../support/uploads.ts'

test('only the holder of the lease can complete an upload', async () => {
  const app = await startApp()
  const { deps } = app.service
  const begun = await createUpload(app, { size: 10, body: Buffer.from('hello') })
  await deps.db.updateTable('artifacts').set({ size_bytes: 5 }).execute()
  const { blob } = await deps.db.selectFrom('artifacts').select('blob').executeTakeFirstOrThrow()
  const upload = { blob: blob as string }
  const old = await acquireLease(deps.db, upload, 0, 0)
  const next = await acquireLease(deps.db, upload, 0, 0)
  if (old === undefined || next === undefined) throw new Error('the lease was not acquired')
  await expect(completeUpload(deps, old)).rejects.toMatchObject({ reason: 'locked' })
  expect((await findUploadRow(deps.db, upload))?.state).toBe('uploading')
  await completeUpload(deps, next)
  await expect(completeUpload(deps, old)).rejects.toMatchObject({ reason: 'locked' })
  await waitForState(app, begun.id, 'ready')
  expect((await readArtifact(app, begun.id)).toString()).toBe('hello')
})
