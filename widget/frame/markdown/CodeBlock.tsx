/** Code with its language and a button that copies it. */
import type { ExtraProps } from 'react-markdown'
import { CopyButton } from '../components/CopyButton.tsx'
import { useFrame } from '../frame-context.ts'
import { ScrollBox } from './ScrollBox.tsx'

export function CodeBlock({ node }: ExtraProps) {
  const { strings } = useFrame().language
  const code = node?.children[0]
  if (code?.type !== 'element') return null
  const [first] = code.children
  const text = first?.type === 'text' ? first.value : ''
  const { className } = code.properties
  const language = Array.isArray(className)
    ? String(className[0])
        .replace(/^language-/, '')
        .slice(0, 40)
    : ''
  return (
    <div className="code" dir="ltr">
      <div className="code-head">
        <span>{language}</span>
        <CopyButton text={text} name={strings.copyCode} />
      </div>
      <ScrollBox kind="code">
        <pre>
          <code>{text}</code>
        </pre>
      </ScrollBox>
    </div>
  )
}
