/**
 * Fails if the documentation links to a missing page or heading, contains a path that is not in the
 * repository, or does not show a picture in `docs/pictures`.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { renderAnchor } from './heading-anchor.ts'

/** Text in backticks that starts with one of these folders is treated as a path. */
const pathStart = /^(\.ci|\.github|client|deploy|docs|examples|packages|scripts|src|test|widget)\//

const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...globSync('docs/**/*.md')].filter((page) =>
  existsSync(page),
)

const missing = pages.flatMap((page) => {
  const prose = readFileSync(page, 'utf8').replaceAll(/^```.*?^```/gms, '')
  // ADRs and the changelog describe history, so they may contain deleted files.
  const isHistory = page === 'CHANGELOG.md' || page.startsWith(join('docs', 'adr'))
  return [...listDeadLinks(page, prose), ...(isHistory ? [] : listMissingPaths(prose))].map(
    (target) => `${page} names ${target}, which does not exist`,
  )
})
const shown = pages.map((page) => readFileSync(page, 'utf8')).join('\n')
const unused = globSync('docs/pictures/*')
  .filter((picture) => !shown.includes(`pictures/${basename(picture)})`))
  .map((picture) => `${picture} appears on no page; show or delete it`)
const faults = [...missing, ...unused]
for (const line of faults) process.stderr.write(`${line}\n`)
process.exitCode = faults.length > 0 ? 1 : 0

/** Lists links to missing files, and to missing headings in Markdown files. */
function listDeadLinks(page: string, prose: string): string[] {
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^([a-z]+:|\/)/.test(target))
    .filter((target) => {
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? page : join(dirname(page), path)
      if (!existsSync(file)) return true
      return anchor !== undefined && file.endsWith('.md') && !listAnchors(file).includes(anchor)
    })
}

/** Returns the anchors of a page's headings, in GitHub's format. */
function listAnchors(file: string): string[] {
  const text = readFileSync(file, 'utf8').replaceAll(/^```.*?^```/gms, '')
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => renderAnchor(title))
}

/** Lists missing paths in backticks. `*` matches any name; paths with `<…>` are placeholders. */
function listMissingPaths(prose: string): string[] {
  return [...prose.matchAll(/`([^`\s]+)`/g)]
    .map(([, word = '']) => word)
    .filter((word) => pathStart.test(word) && !word.includes('<') && globSync(word).length === 0)
}
