/** Checks whether other users of the machine can change or read an installation's data. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissing } from '../lib/files.ts'
import { databaseName, SECRET_NAME } from './data-directory.ts'

const OTHERS_WRITE = 0o022
const OTHERS_ENTER = 0o011
const OTHERS_USE = 0o077

/** Returns a sentence for each permission that is too broad, including the command that fixes it. */
export async function listPermissionProblems(dataDir: string): Promise<string[]> {
  if (dataDir === ':memory:') return []
  const problems = [await findDirectoryProblem(dataDir)]
  if (((await readMode(dataDir)) & OTHERS_ENTER) !== 0)
    for (const name of [SECRET_NAME, databaseName]) problems.push(await findFileProblem(join(dataDir, name)))
  return problems.filter((problem) => problem !== undefined)
}

/** Returns a problem, or undefined if only the owner can write to the directory. */
export async function findDirectoryProblem(path: string): Promise<string | undefined> {
  if (((await readMode(path)) & OTHERS_WRITE) === 0) return undefined
  return `other users of this machine can write to ${path}; run \`chmod 700\` on it`
}

/** Returns a problem, or undefined if only the owner can use the file or it does not exist. */
export async function findFileProblem(path: string): Promise<string | undefined> {
  const mode = await readMode(path)
  if ((mode & OTHERS_USE) === 0) return undefined
  return `other users of this machine can read or change ${path} (mode ${mode.toString(8)}); run \`chmod 600\` on it`
}

async function readMode(path: string): Promise<number> {
  try {
    return (await stat(path)).mode & 0o777
  } catch (error) {
    if (isMissing(error)) return 0
    throw error
  }
}
