/** Reads the Dockerfile and the files in `deploy/`, and parses the settings in them. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { parseConfig } from '../../src/config/parse.ts'
import { settingNames } from '../../src/config/settings.ts'
import { parseDockerfile, type Stage } from './dockerfile.ts'
import { repository } from './process.ts'

export const readRepositoryFile = (path: string) => readFile(join(repository, path), 'utf8')

/** The last stage of the Dockerfile. */
export const image = parseDockerfile(await readRepositoryFile('Dockerfile')).at(-1) as Stage

/** Environment variables of the image that are not Parley settings. */
const otherNames = ['NODE_ENV']

/** Parses the environment variables; fails if there are unknown names or warnings. */
export async function configOf(variables: Readonly<Record<string, string>>) {
  for (const name of Object.keys(variables)) expect([...settingNames, ...otherNames]).toContain(name)
  const { config, warnings } = await parseConfig(variables)
  expect(warnings).toEqual([])
  return config
}

/** Replaces the mount path `from` in the variables with the test's folder `to`. */
export function moveFiles(variables: NodeJS.Dict<string>, from: string, to: string) {
  const moved = Object.entries(variables).map(([name, value]) => [name, value?.replace(from, `${to}/`)])
  return Object.fromEntries(moved) as Record<string, string>
}
