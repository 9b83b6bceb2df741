/** Light, dark, or as the system has it. */
import { ActionIcon, type MantineColorScheme, Menu, useMantineColorScheme } from '@mantine/core'
import { Icon, type IconName } from './icons.tsx'

const choices: readonly { scheme: MantineColorScheme; label: string; icon: IconName }[] = [
  { scheme: 'light', label: 'Light', icon: 'sun' },
  { scheme: 'dark', label: 'Dark', icon: 'moon' },
  { scheme: 'auto', label: 'As the system', icon: 'system' },
]

export function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const current = choices.find(({ scheme }) => scheme === colorScheme)
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Theme: ${current?.label}`}>
          <Icon name={current?.icon ?? 'system'} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {choices.map(({ scheme, label, icon }) => (
          <Menu.Item
            key={scheme}
            leftSection={<Icon name={icon} size={16} />}
            rightSection={scheme === colorScheme ? <Icon name="check" size={16} /> : null}
            onClick={() => setColorScheme(scheme)}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
