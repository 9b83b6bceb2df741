/** Edits the page tools that a trial offers to the agent; the tester answers their calls. */
import { Button, Checkbox, Group, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { MockTool } from '../../../widget/frame/trial/messages.ts'
import { Dialog } from '../../components/Dialog.tsx'
import { isRecord } from '../object-paths.ts'
import type { WrittenTool } from './stored-tests.ts'

interface PageToolsProps {
  readonly tools: readonly WrittenTool[]
  readonly onChange: (tools: readonly WrittenTool[]) => void
}

const newTool: WrittenTool = { name: '', description: '', parameters: '{"type": "object"}', isAsked: false }

export function PageToolsButton({ tools, onChange }: PageToolsProps) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <Button variant="subtle" color="gray" size="compact-sm" onClick={() => setIsOpen(true)}>
        {tools.length === 0 ? 'Page tools' : `Page tools (${tools.length})`}
      </Button>
      <Dialog title="Page tools" isOpen={isOpen} onClose={() => setIsOpen(false)} size="lg">
        <Stack gap="md">
          <Text size="sm">
            Pages can offer tools to the agent. Add the tools of your page here to see when the agent calls
            them. You enter the result of each call.
          </Text>
          {tools.map((tool, index) => (
            <ToolForm
              // biome-ignore lint/suspicious/noArrayIndexKey: a tool has no other identity while its name changes
              key={index}
              tool={tool}
              onChange={(changed) => onChange(tools.with(index, changed))}
              onRemove={() => onChange(tools.toSpliced(index, 1))}
            />
          ))}
          <Group justify="space-between">
            <Button variant="default" size="xs" onClick={() => onChange([...tools, newTool])}>
              Add page tool
            </Button>
            <Button size="xs" onClick={() => setIsOpen(false)}>
              Done
            </Button>
          </Group>
        </Stack>
      </Dialog>
    </>
  )
}

interface ToolFormProps {
  readonly tool: WrittenTool
  readonly onChange: (tool: WrittenTool) => void
  readonly onRemove: () => void
}

const toolName = /^[A-Za-z0-9_-]{1,52}$/

function ToolForm({ tool, onChange, onRemove }: ToolFormProps) {
  const { name, description, parameters, isAsked } = tool
  return (
    <Stack gap="xs" className="panel" p="sm" component="section" aria-label={`Page tool ${name}`}>
      <TextInput
        label="Tool name"
        placeholder="add_to_cart"
        value={name}
        error={name === '' || toolName.test(name) ? undefined : 'Use 1 to 52 letters, digits, _ and -'}
        onChange={(event) => onChange({ ...tool, name: event.currentTarget.value })}
      />
      <TextInput
        label="Description"
        value={description}
        onChange={(event) => onChange({ ...tool, description: event.currentTarget.value })}
      />
      <Textarea
        label="Parameters as JSON Schema"
        autosize
        minRows={2}
        maxRows={10}
        classNames={{ input: 'code-input' }}
        value={parameters}
        error={readSchema(parameters) === undefined ? 'Enter a JSON object with "type": "object"' : undefined}
        onChange={(event) => onChange({ ...tool, parameters: event.currentTarget.value })}
      />
      <Group justify="space-between">
        <Checkbox
          label="The visitor must allow each call"
          checked={isAsked}
          onChange={(event) => onChange({ ...tool, isAsked: event.currentTarget.checked })}
        />
        <Button variant="subtle" color="red" size="xs" onClick={onRemove}>
          Remove
        </Button>
      </Group>
    </Stack>
  )
}

function readSchema(text: string): MockTool['inputSchema'] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) && value.type === 'object' ? { ...value, type: 'object' } : undefined
  } catch {
    return undefined
  }
}

/** Returns the valid tools as the frame offers them. */
export function toMockTools(tools: readonly WrittenTool[]): MockTool[] {
  const names = new Set<string>()
  return tools.flatMap(({ name, description, parameters, isAsked }) => {
    const inputSchema = readSchema(parameters)
    if (inputSchema === undefined || !toolName.test(name) || names.has(name)) return []
    names.add(name)
    return [
      {
        name: `postMessage_${name}`,
        ...(description === '' ? {} : { description }),
        inputSchema,
        ...(isAsked ? { annotations: { destructiveHint: true } } : {}),
      },
    ]
  })
}
