/** Fails when the documentation names a path of the repository that is not there. Run by `npm run verify`. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** A backticked word is taken for a path when it starts in one of these; the rest is code, keys and URLs. */
const pathStart = /^(\.ci|\.github|client|deploy|docs|examples|packages|scripts|src|test|widget)\//

/** The pages that describe the present. ADRs are history: what they name may be gone. */
const pages = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { exclude: ['docs/adr'] })]

const missing = pages
  .filter((page) => existsSync(page))
  .flatMap((page) => listMissingPaths(page).map((path) => `${page} names ${path}, which does not exist`))
for (const line of missing) process.stderr.write(`${line}\n`)
process.exitCode = missing.length > 0 ? 1 : 0

/** The repository's paths a page names and the repository lacks; `*` stands for any name, `<…>` for one yet to be chosen. */
function listMissingPaths(page: string): string[] {
  const prose = readFileSync(page, 'utf8').replaceAll(/^```.*?^```/gms, '')
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target.replace(/#.*$/, ''))
    .filter((target) => target !== '' && !/^([a-z]+:|\/)/.test(target))
    .map((target) => join(dirname(page), target))
  const words = [...prose.matchAll(/`([^`\s]+)`/g)]
    .map(([, word = '']) => word)
    .filter((word) => pathStart.test(word))
  return [...links, ...words].filter((path) => !path.includes('<') && globSync(path).length === 0)
}
