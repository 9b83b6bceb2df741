/** Tests how a tenant's artifacts are listed and read. */
import { expect, test } from 'vitest'
import { createTenant } from '../../support/agents.ts'
import { startApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { callProcedure } from '../../support/rpc.ts'
import { callUpload, postUpload } from '../../support/uploads.ts'

test('the artifact list is paginated, newest first, and includes unfinished uploads', async () => {
  const clock = createFakeClock()
  const app = await startApp({}, { clock })
  const ids: string[] = []
  for (const filename of ['a.srt', 'b.srt', 'c.srt']) {
    const answer = await postUpload(app, {
      metadata: { filename, kind: 'captions', name: `The ${filename}` },
    })
    ids.unshift(answer.headers.get('X-Artifact-Id') as string)
    clock.advance(1)
  }
  const { body: first } = await app.call('GET', '/v1/artifacts?limit=2')
  expect(first).toMatchObject({ object: 'list', has_more: true })
  expect(first.data.map(({ artifactId }: { artifactId: string }) => artifactId)).toEqual(ids.slice(0, 2))
  expect(first.data[0]).toEqual({
    artifactId: ids[0],
    state: 'uploading',
    kind: 'captions',
    name: 'The c.srt',
    filename: 'c.srt',
    bytesReceived: 0,
    size: 10,
    acknowledged: false,
    mediaType: null,
    hasPoster: false,
    createdAt: clock.now() / 1000 - 1,
    finishedAt: null,
  })
  expect((await app.call('GET', `/v1/artifacts/${ids[0]}`)).body).toEqual(first.data[0])
  const { body: second } = await app.call('GET', `/v1/artifacts?limit=2&after=${ids[1]}`)
  expect(second.data.map(({ artifactId }: { artifactId: string }) => artifactId)).toEqual(ids.slice(2))
  expect(second.has_more).toBe(false)
})

test("the artifact list omits reservations, expired uploads and other tenants' artifacts", async () => {
  const clock = createFakeClock()
  const app = await startApp({}, { clock })
  await app.call('POST', '/v1/artifacts', { body: {} })
  const { headers } = await postUpload(app)
  const { body } = await app.call('GET', '/v1/artifacts')
  expect(body.data).toHaveLength(1)
  const other = await app.call('GET', '/v1/artifacts', { key: await createTenant(app) })
  expect(other.body.data).toEqual([])
  const wrong = await app.call('GET', `/v1/artifacts?after=${crypto.randomUUID()}`)
  expect([wrong.status, wrong.body.error.param]).toEqual([400, 'after'])
  const { headers: status } = await callUpload(app, 'HEAD', headers.get('Location') as string)
  clock.advance((Date.parse(status.get('Upload-Expires') as string) - clock.now()) / 1000 + 1)
  expect((await app.call('GET', '/v1/artifacts')).body.data).toEqual([])
})

test('reading an artifact that is reserved, expired, unknown or owned by another tenant returns 404', async () => {
  const clock = createFakeClock()
  const app = await startApp({}, { clock })
  const reserved = (await app.call('POST', '/v1/artifacts', { body: {} })).body.artifact_id
  const { headers } = await postUpload(app)
  const id = headers.get('X-Artifact-Id') as string
  const other = await createTenant(app)
  const listed = await callProcedure(app, 'artifacts.get', { artifact_id: id })
  expect(listed.body.result.data.json).toMatchObject({ artifactId: id, state: 'uploading' })
  for (const [wanted, key] of [
    [reserved, app.key],
    [crypto.randomUUID(), app.key],
    [id, other],
  ]) {
    const answer = await app.call('GET', `/v1/artifacts/${wanted}`, { key })
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    const typed = await callProcedure(app, 'artifacts.get', { artifact_id: wanted }, { key })
    expect(typed.status).toBe(404)
  }
  expect((await app.call('GET', '/v1/artifacts/nonsense')).body.error.param).toBe('artifact_id')
  const { headers: status } = await callUpload(app, 'HEAD', headers.get('Location') as string)
  clock.advance((Date.parse(status.get('Upload-Expires') as string) - clock.now()) / 1000 + 1)
  expect((await app.call('GET', `/v1/artifacts/${id}`)).status).toBe(404)
})
