/** Runs once before all tests: one PostgreSQL server, on which each test gets databases of its own. */
import type { TestProject } from 'vitest/node'
import { createTemplate, startPostgres } from './postgres.ts'

/** What vitest calls; it calls the answer at the end. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres()
  try {
    await createTemplate(server)
  } catch (error) {
    await server.remove()
    throw error
  }
  project.provide('postgresUrl', server.urlOf('postgres'))
  return () => server.remove()
}
