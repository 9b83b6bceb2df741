/** Tests that a server still answers while another program holds the write lock of its SQLite database. */
import { rm } from 'node:fs/promises'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { GREETER, startApp } from '../../support/app.ts'
import { openSqliteFile } from '../../support/database.ts'
import { makeFolder } from '../../support/process.ts'

const yaml = { body: GREETER, headers: { 'Content-Type': 'application/yaml' } }

describe.runIf(inject('database') === 'sqlite')('while another program holds the write lock', () => {
  test('the server answers reads immediately and writes once the lock is released', async () => {
    const dataDir = await makeFolder()
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
    const app = await startApp({ PARLEY_DATA_DIR: dataDir })
    const other = openSqliteFile(dataDir)
    other.exec('begin immediate')
    let answered = 0
    const writes = Array.from({ length: 3 }, async () => {
      const { status } = await app.call('POST', '/v1/agents', yaml)
      answered++
      return status
    })
    expect((await app.call('GET', '/healthz', { key: null })).status).toBe(200)
    expect((await app.call('GET', '/readyz', { key: null })).status).toBe(200)
    expect((await app.call('GET', '/v1/agents')).body.data).toEqual([])
    expect(answered).toBe(0)
    other.exec('rollback')
    expect(await Promise.all(writes)).toEqual([201, 201, 201])
    expect((await app.call('GET', '/v1/agents')).body.data).toHaveLength(3)
  })
})
