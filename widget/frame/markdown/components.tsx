/** What stands for each part of Markdown: nothing loads anything, links leave the frame on a click alone. Security: 2.11. */
import type { ReactNode } from 'react'
import type { Components, ExtraProps } from 'react-markdown'
import { CodeBlock } from './CodeBlock.tsx'
import { ScrollBox } from './ScrollBox.tsx'
import { safeAddress } from './safe-address.ts'

type Props = ExtraProps & { readonly children?: ReactNode }

export const components: Components = {
  a: ({ href, children }) => <Link address={href}>{children}</Link>,
  img: ({ src, alt }) => <Link address={typeof src === 'string' ? src : undefined}>{alt || src}</Link>,
  pre: CodeBlock,
  table: ({ children }: Props) => (
    <ScrollBox kind="table">
      <table dir="auto">{children}</table>
    </ScrollBox>
  ),
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
  p: ({ children }: Props) => <p dir="auto">{children}</p>,
  ul: ({ children }: Props) => <ul dir="auto">{children}</ul>,
  ol: ({ children, start }) => (
    <ol dir="auto" start={start}>
      {children}
    </ol>
  ),
  li: ({ children, className }) => <li className={className}>{children}</li>,
  blockquote: ({ children }: Props) => <blockquote dir="auto">{children}</blockquote>,
  // A task of a list: shown, not to be ticked.
  input: ({ checked }) => <span aria-hidden="true">{checked ? '☑ ' : '☐ '}</span>,
  section: ({ children }: Props) => <>{children}</>,
  sup: ({ children }: Props) => <sup>{children}</sup>,
}

/** Below the headings of the window, and all on one level: a model leaves levels out. */
function Heading({ children, node }: Props) {
  return (
    <h3 dir="auto" data-level={node?.tagName}>
      {children}
    </h3>
  )
}

/** An address that is not for people is not followed: its text stays. */
function Link({ address, children }: { address: string | undefined; children: ReactNode }) {
  const href = safeAddress(address)
  if (href === undefined) return <span>{children}</span>
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      <bdi>{children}</bdi>
    </a>
  )
}
