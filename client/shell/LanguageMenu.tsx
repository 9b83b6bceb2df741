/** Selects the console's language. */
import { ActionIcon, Menu } from '@mantine/core'
import { changeLanguage, currentLanguage, languages, t } from '../strings/language.ts'
import { Icon } from './icons.tsx'

export function LanguageMenu() {
  const current = languages.find(({ code }) => code === currentLanguage())
  return (
    <Menu position="top-end">
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={t('shell.languageNow', { language: current?.name ?? '' })}
        >
          <Icon name="language" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {languages.map(({ code, name }) => (
          <Menu.Item
            key={code}
            lang={code}
            rightSection={code === current?.code ? <Icon name="check" size={16} /> : null}
            onClick={() => changeLanguage(code)}
          >
            <bdi>{name}</bdi>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
